"""The registry of guarded table formats names tables, refuses unknown formats, and takes a new one by one entry."""

from __future__ import annotations

from dataclasses import replace

import pytest

from safewriter import SafeWriter, parts
from safewriter.errors import UnsupportedError
from safewriter.objects import Location
from safewriter.record.document import Status
from safewriter.settle.recovery import Cause
from safewriter.tables.format import Settling
from safewriter.tables.iceberg.name import TableName
from safewriter.tables.registry import FORMATS, format_for_scripts, format_of
from safewriter.tables.table import Intent
from tests.unit.safewriter.tables import toy
from tests.unit.safewriter.world import World


def test_each_format_names_its_tables_in_one_way() -> None:
    """A Delta table is a path, an Iceberg table the name of a catalog's."""
    assert format_of("delta").parse("s3a://lake/table") == Location("lake", "table")
    assert format_of("iceberg").parse("catalog.db.table") == TableName.parse("catalog.db.table")


@pytest.mark.parametrize("format", ["hudi", "parquet", "Delta", ""])
def test_a_format_that_is_not_guarded_is_refused(format: str) -> None:  # noqa: A002 - the word of Spark's own API
    """Before any object of the write is on S3, and for a document of a newer version."""
    with pytest.raises(UnsupportedError, match=r"is not guarded; use 'delta' or 'iceberg'$"):
        format_of(format)
    world = World()
    document = replace(world.job().begin().document, format=format)
    with pytest.raises(UnsupportedError, match=r"is not guarded; use 'delta' or 'iceberg'$"):
        world.recovery().table_of(document)


def test_a_script_s_block_is_of_a_format_that_statements_write() -> None:
    """Only the library's own build passes the gate of a snapshot, so a script's block would guard nothing."""
    format_for_scripts("delta")
    format_for_scripts("iceberg")
    with pytest.raises(UnsupportedError, match=r"safewriter.snapshots writes it.* use 'delta' or 'iceberg'$"):
        format_for_scripts("snapshot")
    with pytest.raises(UnsupportedError, match=r"format 'hudi' is not guarded; use 'delta' or 'iceberg'$"):
        format_for_scripts("hudi")
    for opened in (
        lambda: SafeWriter(None, "s3a://lake/x", format="snapshot"),  # type: ignore[arg-type]
        lambda: next(parts(None, "s3a://lake/x", [1], format="snapshot")),  # type: ignore[arg-type]
    ):
        with pytest.raises(UnsupportedError, match="format 'snapshot'"):
            opened()


def test_without_a_bound_a_table_may_be_read_to_its_end() -> None:
    """A command of the operator has no deadline."""
    world = World()
    document = world.job().begin().land().document
    found = format_of("delta").table(document, Settling(lambda _: world.lake, world.checkpoints, world.clock))

    assert found.next_move(document, Intent("operator", undo=False, nothing_sent=False)).status is Status.COMMITTED


@pytest.mark.parametrize("format", ["delta", "snapshot"])
def test_a_document_of_a_whole_bucket_is_not_settled(format: str) -> None:  # noqa: A002 - as in SafeWriter
    """No block is opened on one, so somebody has forged it; a clean-up would list all that is there."""
    world = World()
    document = replace(world.job().begin().document, table="s3://lake", format=format)
    with pytest.raises(UnsupportedError, match="is a whole bucket"):
        format_of(format).table(document, Settling(lambda _: world.lake, world.checkpoints, world.clock))


def test_a_format_of_ones_own_is_guarded_like_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """One module and one entry are enough: a block is claimed, and its dead attempt is settled."""
    monkeypatch.setitem(FORMATS, "toy", "tests.unit.safewriter.tables.toy")
    world = World()
    write = replace(world.write, table=format_of("toy").parse("toy:shelf"), format="toy")
    monkeypatch.setattr(World, "write", write)
    held = world.job().begin().held
    assert held is not None
    assert (held.document.table, held.document.format) == ("toy:shelf", "toy")

    toy.PUBLISHED.clear()
    settled = world.recovery().settle(held.document.write_key, Cause.RETRY)
    assert settled is not None
    assert settled.document.status == Status.ROLLED_BACK

    again = world.job().begin().held
    assert again is not None
    toy.PUBLISHED[again.document.write_key] = again.document.epoch
    settled = world.recovery().settle(again.document.write_key, Cause.RETRY)
    assert settled is not None
    assert (settled.document.status, settled.document.attempt.commit_version) == (Status.COMMITTED, 2)
