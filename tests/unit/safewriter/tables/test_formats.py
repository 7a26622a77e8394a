from __future__ import annotations

from dataclasses import replace

import pytest

from safewriter.errors import UnsupportedError
from safewriter.objects import Location
from safewriter.record.document import Status
from safewriter.tables.formats import TableOpener, canonical
from safewriter.tables.iceberg.name import TableName
from safewriter.tables.table import Intent
from tests.unit.safewriter.world import World


def test_each_format_names_its_tables_in_one_way() -> None:
    """A Delta table is a path, an Iceberg table the name of a catalog's."""
    assert canonical("s3a://lake/table", "delta") == Location("lake", "table")
    assert canonical("catalog.db.table", "iceberg") == TableName.parse("catalog.db.table")


@pytest.mark.parametrize("format", ["hudi", "parquet", "Delta", ""])
def test_a_format_that_is_not_guarded_is_refused(format: str) -> None:  # noqa: A002 - the word of Spark's own API
    """Before anything of the write is on S3, and by whoever finds a document that a newer version has left."""
    with pytest.raises(UnsupportedError, match="is not guarded; use 'delta' or 'iceberg'"):
        canonical("s3://lake/table", format)
    world = World()
    document = replace(world.job().begin().document, format=format)
    with pytest.raises(UnsupportedError, match="is not guarded by this version"):
        world.recovery().tables.open(document)


def test_without_a_bound_a_table_may_be_read_to_its_end() -> None:
    """A command of the operator has no deadline."""
    world = World()
    document = world.job().begin().land().document
    found = TableOpener(lambda _: world.lake, world.checkpoints, world.clock).open(document)

    assert found.next_move(document, Intent("operator", undo=False, nothing_sent=False)).status is Status.COMMITTED
