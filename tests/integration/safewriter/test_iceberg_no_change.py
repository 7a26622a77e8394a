"""Statements that change nothing have a witness, a snapshot of their block; a block without a statement has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter import NotCommittedError, SafeWriter
from tests.integration.safewriter.ice_rows import MODES, append, ids

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.support.ice import Ice

pytestmark = [pytest.mark.spark]

SHORT = pytest.mark.parametrize("ice", ["lite"], indirect=True)
STATEMENTS = {
    "merge": "MERGE INTO {table} t USING (SELECT 99L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = 5",
    "delete": "DELETE FROM {table} WHERE id = 99",
    "delete of nothing": "DELETE FROM {table} WHERE false",
    "update": "UPDATE {table} SET id = 5 WHERE id = 99",
    "append": "INSERT INTO {table} SELECT id, 'a' FROM range(0)",
}


@SHORT
@pytest.mark.parametrize("branch", ["", ".branch_audit"])
@pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=() if mode == "copy-on-write" else pytest.mark.matrix) for mode in MODES]
)
def test_statements_that_change_nothing_are_committed_by_a_snapshot_of_their_block(
    spark: SparkSession, ice: Ice, mode: str, branch: str
) -> None:
    """Iceberg makes one for most of them; for the others the block makes it, since they have completed."""
    modes = ", ".join(f"'write.{one}.mode' = '{mode}'" for one in ("delete", "update", "merge"))
    spark.sql(f"ALTER TABLE {ice.name} SET TBLPROPERTIES ({modes})")
    if branch:
        spark.sql(f"ALTER TABLE {ice.name} CREATE BRANCH audit")
    for what, statement in STATEMENTS.items():
        with SafeWriter(spark, f"{ice.name}{branch}", format="iceberg", step=what) as block:
            spark.sql(statement.format(table=block.table))
            block.success()
        assert block.checkpoint is not None
        assert block.checkpoint.status == "committed"
        assert block.checkpoint.attempt.commit_version in {one.snapshot_id for one in ice.load().metadata.snapshots}
    with SafeWriter(spark, f"{ice.name}{branch}", format="iceberg", step="overwrite") as block:
        spark.range(0).selectExpr("id", "'a' AS part").writeTo(block.table).overwritePartitions()
        block.success()
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4]
    summaries = [one.summary for one in ice.load().metadata.snapshots]
    assert sum(one is not None and bool(one.get("safewriter.attempt")) for one in summaries) == len(STATEMENTS) + 1


@SHORT
def test_a_statement_that_changes_nothing_adds_no_snapshot_beside_another(spark: SparkSession, ice: Ice) -> None:
    """So Iceberg sees only one statement of the block, and publishes it on a main that has moved."""
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        spark.sql(f"DELETE FROM {block.table} WHERE false")
        append(spark, block.table, 5, 6)
        block.success()
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4, 5]
    assert len(ice.history()) == 2


@SHORT
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_block_whose_table_nobody_has_written_is_not_committed(
    spark: SparkSession, ice: Ice, *, elsewhere: bool
) -> None:
    """Its rows may have gone to another table."""
    before = ice.load().metadata_location
    with (
        pytest.raises(NotCommittedError, match="no statement has written"),
        SafeWriter(spark, ice.name, format="iceberg") as block,
    ):
        if elsewhere:
            spark.range(3).writeTo(f"{ice.name}_other").create()
        block.success()
    assert ice.load().metadata_location == before
    assert ice.document().status == "rolled_back"
