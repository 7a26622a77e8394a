"""Lambda's fan-out: eight processes append to one Iceberg table at once, on each kind of catalog."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.lab.bench.fanout import Writers
from tests.support.lake import CHECKPOINTS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.ice import Catalog

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.matrix]

WRITERS = 8
ROUNDS = 5
CATALOGS = ["lite", "rest", "postgres", pytest.param("glue", marks=pytest.mark.aws)]


@pytest.mark.usefixtures("run_key")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", CATALOGS)
def test_all_appends_of_eight_processes_are_committed(
    spark: SparkSession,
    s3: EmbeddedS3,
    kind: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """No append fails, is unknown, lost or doubled; the plain ones beside them may use up Iceberg's four attempts, and
    the test prints how many did.
    """
    catalog: Catalog = request.getfixturevalue(kind)
    table, plain = catalog.table(s3.observer()), catalog.table(s3.observer())
    for one in (table, plain):
        spark.sql(f"CREATE TABLE {one.name} (id LONG) USING iceberg")
    for key, value in {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS}.items():
        monkeypatch.setenv(key, value)
    if (password := catalog.spark.get("jdbc.password")) is not None:
        monkeypatch.setenv("PGPASSWORD", password)
    taken: list[tuple[float, ...]] = []
    with Writers(WRITERS, catalog.settings(), tmp_path) as writers:
        for _ in range(ROUNDS):
            began = time.monotonic()
            writers.append("plain", plain.name)
            between = time.monotonic()
            assert writers.append("guarded", table.name) == []
            taken.append((round(between - began, 1), round(time.monotonic() - between, 1)))
    print(kind, "plain and guarded, in seconds a round", taken, "plain rows", plain.rows())  # noqa: T201 - the figure
    documents = table.documents()
    assert [document.status for document in documents] == ["committed"] * WRITERS * ROUNDS
    assert {document.epoch for document in documents} == {1}
    assert table.rows() == WRITERS * ROUNDS
    table.check()
