"""A commit that its block takes back, or cannot take back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import safewriter
from safewriter import SafeWriter
from tests.integration.safewriter.appending import append, batch
from tests.support.neighbour import append_beside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.lake import Lake

pytestmark = pytest.mark.spark


def test_an_exception_undoes_exactly_our_commit(spark: SparkSession, lake: Lake) -> None:
    """The user's exception goes on unchanged; a commit of somebody else that came behind ours stays."""
    append(spark, lake, 10, "base")
    with pytest.raises(ZeroDivisionError), SafeWriter(spark, lake.table, step="fails") as block:
        batch(spark, 7).write.format("delta").mode("append").save(block.table)
        append_beside(lake, 4)
        _ = 1 / 0
    assert lake.rows() == 14
    assert lake.operations() == ["WRITE", "WRITE", "WRITE", "SAFEWRITER REVERT"]
    assert block.checkpoint is not None
    assert block.checkpoint.status == "rolled_back"
    assert spark.read.format("delta").load(lake.table).count() == 14
    append(spark, lake, 1, "after")  # Spark goes on from there
    assert lake.rows() == 15
    lake.check()


def test_a_block_that_is_left_without_success_leaves_nothing(spark: SparkSession, lake: Lake) -> None:
    """Undoing a creation leaves an empty table, and the verdict says so."""
    with SafeWriter(spark, lake.table) as block:
        batch(spark).write.format("delta").mode("append").save(block.table)
    assert lake.rows() == 0
    document = lake.document()
    assert document.status == "rolled_back"
    assert "an empty table remains" in str(document.reason)
    lake.check()


def test_an_append_only_table_cannot_promise_an_undo(spark: SparkSession, lake: Lake) -> None:
    """`commit_point="success"` is refused before the write; an exception ends committed, loudly."""
    spark.sql(f"CREATE TABLE delta.`{lake.table}` (id LONG) USING delta TBLPROPERTIES ('delta.appendOnly' = 'true')")
    with pytest.raises(safewriter.UnsupportedError, match="append-only"):
        SafeWriter(spark, lake.table, commit_point="success").__enter__()
    with pytest.raises(RuntimeError) as raised, SafeWriter(spark, lake.table, step="two") as block:
        spark.range(5).write.format("delta").mode("append").save(block.table)
        raise RuntimeError
    assert block.checkpoint is not None
    assert (block.checkpoint.status, block.checkpoint.undo_refused) == ("committed", "the table is append-only")
    assert any("append-only" in note for note in raised.value.__notes__)
    assert lake.rows() == 5


FEATURES = {
    "plain": "",
    "change data feed": "'delta.enableChangeDataFeed' = 'true'",
    "in-commit timestamps": "'delta.enableInCommitTimestamps' = 'true'",
    "row tracking": "'delta.enableRowTracking' = 'true'",
    "column mapping": "'delta.columnMapping.mode' = 'name'",
    "deletion vectors": "'delta.enableDeletionVectors' = 'true'",
    "v2 checkpoints": "'delta.checkpointPolicy' = 'v2'",
}


SHORT = ("column mapping",)
"""The others are of the matrix; test_operations.py takes back writes under all of them at once."""


@pytest.mark.parametrize(
    "properties",
    [
        pytest.param(value, id=name, marks=[] if name in SHORT else [pytest.mark.matrix])
        for name, value in FEATURES.items()
    ],
)
def test_an_undo_is_right_under_every_table_feature_that_allows_one(
    spark: SparkSession, lake: Lake, properties: str
) -> None:
    """Spark reads the same rows as before, its history is whole, and it goes on appending and deleting."""
    table = f"delta.`{lake.table}`"
    with_properties = f"TBLPROPERTIES ({properties})" if properties else ""
    spark.sql(f"CREATE TABLE {table} (id LONG, part LONG) USING delta PARTITIONED BY (part) {with_properties}")
    append(spark, lake, 6, "base")
    with pytest.raises(RuntimeError), SafeWriter(spark, lake.table, step="fails") as block:
        batch(spark, 20).write.format("delta").mode("append").save(block.table)
        raise RuntimeError
    assert block.checkpoint is not None
    assert (block.checkpoint.status, block.checkpoint.undo_refused) == ("rolled_back", None)
    assert spark.read.format("delta").load(lake.table).count() == 6
    append(spark, lake, 6, "after")
    spark.sql(f"DELETE FROM {table} WHERE id = 0")
    assert spark.read.format("delta").load(lake.table).count() == 10
    operations = [row.operation for row in spark.sql(f"DESCRIBE HISTORY {table}").collect()]
    assert operations == ["DELETE", "WRITE", "SAFEWRITER REVERT", "WRITE", "WRITE", "CREATE TABLE"]
    lake.check()
