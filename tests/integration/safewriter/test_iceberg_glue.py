"""Settling without a JVM in a Glue catalog, which is moto's. The check of versions, which makes Glue's UpdateTable a
compare-and-swap, is the emulator's own (scripts/emulator/glue.py): moto has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.catalog.glue import GlueCatalog

from safewriter.recovery import Cause
from safewriter.state import Status
from scripts.emulator import EmbeddedS3
from tests.unit.safewriter.tables.iceberg.bench import Bench

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class GlueBench(Bench):
    """The bench, with its tables in Glue."""

    endpoint = ""

    def reached(self, folder: Path) -> dict[str, str]:
        del folder
        return {
            "type": "glue",
            "glue.endpoint": self.endpoint,
            "client.region": "eu-central-1",  # a test with Spark has a database of the same name in moto's Glue
            "warehouse": "s3://lake/w",
        }


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with EmbeddedS3() as aws:
        monkeypatch.setattr(GlueBench, "endpoint", aws.endpoint)
        made = GlueBench(tmp_path, monkeypatch)
        yield made
        made.catalog.drop_table("db.t")  # moto's Glue is one for the whole process
        made.catalog.drop_namespace("db")


@pytest.mark.parametrize(
    ("cause", "status", "rows"), [(Cause.KILLED, Status.COMMITTED, 20), (Cause.EXCEPTION, Status.ROLLED_BACK, 10)]
)
def test_what_is_staged_is_published_or_dropped(bench: Bench, cause: Cause, status: Status, rows: int) -> None:
    """As in every catalog."""
    bench.stage(bench.claim())
    assert bench.settle(cause).status is status
    assert bench.rows() == rows
    assert set(bench.load().metadata.refs) == {"main"}
    bench.check()


def test_an_append_is_applied_again_on_a_main_that_has_moved(bench: Bench) -> None:
    """As in every catalog."""
    bench.stage(bench.claim())
    bench.add("main", "foreign-1")
    assert bench.settle().status is Status.COMMITTED
    assert bench.rows() == 30
    bench.check()


def test_a_commit_of_the_same_moment_is_not_overwritten(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody commits between the settler's look at the table and its change: Glue refuses to change a version that is
    gone, the settler looks again, and both have their rows.
    """
    bench.stage(bench.claim())
    update, others = GlueCatalog._update_glue_table, iter(["foreign-1"])

    def late(*arguments: Any, **named: Any) -> None:
        for name in others:
            bench.add("main", name)
        update(*arguments, **named)

    monkeypatch.setattr(GlueCatalog, "_update_glue_table", late)
    assert bench.settle().status is Status.COMMITTED
    assert bench.rows() == 30
    bench.check()
