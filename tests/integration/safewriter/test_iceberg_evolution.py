"""Branches of a table, and tables whose schema and partitioning change around a guarded block.

Such a change uses the table's own name, before the block, or another session while it is open.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from safewriter import ConflictError, NotCommittedError, SafeWriter, UnsupportedError
from tests.integration.safewriter.ice_rows import elsewhere

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.ice import Catalog, Ice
    from tests.support.lake import Lake

pytestmark = [pytest.mark.spark]


class AbandonedError(Exception):
    """A script's own error in its block."""


@pytest.fixture
def ice(spark: SparkSession, s3: EmbeddedS3, lite: Catalog, lake: Lake) -> Ice:
    """A table with five rows, of 1 to 5 January 2026, partitioned by the day and by a bucket of the id."""
    del lake  # whose fixture sets the place of checkpoints
    table = lite.table(s3.observer())
    spark.sql(f"CREATE TABLE {table.name} (id LONG, day DATE) USING iceberg PARTITIONED BY (days(day), bucket(2, id))")
    append(spark, table.name, 0, 5)
    return table


def append(spark: SparkSession, table: str, begin: int, end: int, more: str = "") -> None:
    frame = spark.range(begin, end, 1, 1).selectExpr("id", "date_add(DATE'2026-01-01', cast(id AS int)) AS day")
    frame = frame.selectExpr("*", more) if more else frame
    frame.writeTo(table).append()


def rows(spark: SparkSession, table: str, *columns: str) -> list[tuple[object, ...]]:
    spark.catalog.refreshTable(table)
    return sorted(tuple(row) for row in spark.table(table).select("id", *columns).collect())


def ids(spark: SparkSession, table: str) -> list[object]:
    return [id_ for (id_,) in rows(spark, table)]


def other_session(spark: SparkSession, ice: Ice) -> SparkSession:
    """Return a session with the catalog, and with its own view of the table."""
    other = spark.newSession()
    for key, value in ice.catalog.settings().items():
        other.conf.set(key, value)
    return other


def test_a_write_for_a_branch_reaches_that_branch_and_nothing_else(spark: SparkSession, ice: Ice) -> None:
    """A failed block leaves the branch unchanged, the next one adds to it; main shows neither."""
    audit = f"{ice.name}.branch_audit"
    spark.sql(f"ALTER TABLE {ice.name} CREATE BRANCH audit")
    append(spark, audit, 5, 6)
    with pytest.raises(AbandonedError), SafeWriter(spark, audit, format="iceberg") as block:
        append(spark, block.table, 6, 8)
        assert ids(spark, block.table) == list(range(8)), "the block reads its branch, and its own rows"
        raise AbandonedError
    assert ids(spark, audit) == list(range(6))
    with SafeWriter(spark, audit, format="iceberg") as block:
        spark.sql(f"DELETE FROM {block.table} WHERE id = 0")
        append(spark, block.table, 6, 8)
        block.success()
    assert (ids(spark, audit), ids(spark, ice.name)) == (list(range(1, 8)), list(range(5)))
    assert ice.refs() == {"main", "audit"}
    assert len(ice.history()) == 1


@pytest.mark.matrix
def test_a_branch_that_is_not_there_is_refused(spark: SparkSession, ice: Ice) -> None:
    """The error has the statement that creates it; a tag of that name is refused, too."""
    spark.sql(f"ALTER TABLE {ice.name} CREATE TAG release")
    for name in ("audit", "release"):
        with (
            pytest.raises(UnsupportedError, match=f"CREATE BRANCH `{name}`"),
            SafeWriter(spark, f"{ice.name}.branch_{name}", format="iceberg"),
        ):
            pass


@pytest.mark.matrix
def test_what_moves_another_branch_is_a_conflict_for_several_statements(spark: SparkSession, ice: Ice) -> None:
    """All branches share the table's counts of commits and rows; a single statement is still published."""
    audit = f"{ice.name}.branch_audit"
    spark.sql(f"ALTER TABLE {ice.name} CREATE BRANCH audit")
    with (
        pytest.raises(ConflictError, match="several statements"),
        SafeWriter(spark, audit, format="iceberg") as block,
    ):
        append(spark, block.table, 5, 6)
        append(spark, block.table, 6, 7)
        elsewhere(lambda: append(other_session(spark, ice), ice.name, 20, 21))
        block.success()
    with SafeWriter(spark, audit, format="iceberg") as block:
        spark.sql(f"DELETE FROM {block.table} WHERE id = 0")
        elsewhere(lambda: append(other_session(spark, ice), ice.name, 21, 22))
        block.success()
    assert (ids(spark, audit), ids(spark, ice.name)) == ([1, 2, 3, 4], [0, 1, 2, 3, 4, 20, 21])


@pytest.mark.parametrize("way", ["name", "spark.wap.branch", "spark.wap.id"])
def test_rows_for_another_branch_than_the_blocks_are_refused(spark: SparkSession, ice: Ice, way: str) -> None:
    """The target would not show them, and their branch would not be checked for conflicts."""
    spark.sql(f"ALTER TABLE {ice.name} CREATE BRANCH audit")
    spark.sql(f"ALTER TABLE {ice.name} SET TBLPROPERTIES ('write.wap.enabled' = '{str(way != 'name').lower()}')")
    before = ice.load().metadata_location
    try:
        with (
            pytest.raises(NotCommittedError, match="another branch than main"),
            SafeWriter(spark, ice.name, format="iceberg") as block,
        ):
            if way == "name":
                append(spark, f"{block.table}.branch_audit", 5, 6)
            else:
                spark.conf.set(way, "other")
                append(spark, block.table, 5, 6)
            block.success()
    finally:
        if way != "name":
            spark.conf.unset(way)
    assert ice.load().metadata_location == before
    assert ice.document().status == "rolled_back"


@pytest.mark.matrix
def test_a_block_for_a_branch_that_is_gone_is_a_conflict(spark: SparkSession, ice: Ice) -> None:
    """The block does not create it again."""
    audit = f"{ice.name}.branch_audit"
    spark.sql(f"ALTER TABLE {ice.name} CREATE BRANCH audit")
    with pytest.raises(ConflictError), SafeWriter(spark, audit, format="iceberg") as block:
        append(spark, block.table, 5, 6)
        other_session(spark, ice).sql(f"ALTER TABLE {ice.name} DROP BRANCH audit")
        block.success()
    assert "audit" not in ice.refs()
    assert ids(spark, ice.name) == list(range(5))


@pytest.mark.matrix
def test_a_table_that_has_evolved_before_the_block_is_written(spark: SparkSession, ice: Ice) -> None:
    """A column, its new name and another partitioning; rows of both partitionings are read together."""
    spark.sql(f"ALTER TABLE {ice.name} ADD COLUMN kind STRING")
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 6, "'new' AS kind")
        block.success()
    spark.sql(f"ALTER TABLE {ice.name} RENAME COLUMN kind TO sort")
    spark.sql(f"ALTER TABLE {ice.name} REPLACE PARTITION FIELD day_day WITH months(day)")
    with SafeWriter(spark, ice.name, format="iceberg", step="2") as block:
        append(spark, block.table, 6, 8, "'newer' AS sort")
        spark.sql(f"DELETE FROM {block.table} WHERE id = 0")
        block.success()
    found = rows(spark, ice.name, "sort")
    assert found == [*((id_, None) for id_ in range(1, 5)), (5, "new"), (6, "newer"), (7, "newer")]
    assert {file.spec_id for file in spark.table(f"{ice.name}.files").collect()} == {0, 1}
    assert spark.table(ice.name).where("day = DATE'2026-01-07'").count() == 1, "pruned by either partitioning"
    ice.check()


@pytest.mark.parametrize(
    "change",
    [
        "ADD COLUMN kind STRING",
        pytest.param("REPLACE PARTITION FIELD day_day WITH months(day)", marks=pytest.mark.matrix),
        pytest.param("SET TBLPROPERTIES ('tier' = 'gold')", marks=pytest.mark.matrix),
    ],
)
def test_a_table_that_evolves_while_the_block_is_open_is_written_all_the_same(
    spark: SparkSession, ice: Ice, change: str
) -> None:
    """No row is changed, and Iceberg reads files of an older schema and partitioning; the change stays."""
    other = other_session(spark, ice)
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 6)
        other.sql(f"ALTER TABLE {ice.name} {change}")
        block.success()
    assert ids(spark, ice.name) == list(range(6))
    metadata = ice.load().metadata
    evolved = (
        "kind" in ice.load().schema().column_names,
        len(metadata.partition_specs),
        metadata.properties.get("tier"),
    )
    assert evolved == {"A": (True, 1, None), "R": (False, 2, None), "S": (False, 1, "gold")}[change[0]]
    append(spark, ice.name, 20, 21, "'theirs' AS kind" if evolved[0] else "")
    assert ids(spark, ice.name) == [*range(6), 20]
    ice.check()


def test_rows_of_other_types_than_the_table_has_by_now_are_not_published(spark: SparkSession, ice: Ice) -> None:
    """The table was replaced: a column of the old name keeps its id, and can be read as one type only."""
    other = other_session(spark, ice)
    with (
        pytest.raises(ConflictError, match="cannot be promoted"),
        SafeWriter(spark, ice.name, format="iceberg") as block,
    ):
        append(spark, block.table, 5, 6)
        other.sql(f"CREATE OR REPLACE TABLE {ice.name} (id STRING, day DATE) USING iceberg")
        theirs = other.sql("SELECT 'one' AS id, DATE'2026-01-01' AS day").writeTo(ice.name)
        elsewhere(theirs.append)
        block.success()
    assert ids(spark, ice.name) == ["one"]
    assert ice.document().status == "rolled_back"


@pytest.mark.matrix
def test_columns_that_a_write_brings_along_are_added(spark: SparkSession, ice: Ice) -> None:
    """`mergeSchema` adds them with the rows; a failed block adds neither."""
    spark.sql(f"ALTER TABLE {ice.name} SET TBLPROPERTIES ('write.spark.accept-any-schema' = 'true')")
    frame = spark.range(5, 7, 1, 1).selectExpr("id", "DATE'2026-02-01' AS day", "'new' AS kind")
    with pytest.raises(AbandonedError), SafeWriter(spark, ice.name, format="iceberg") as block:
        frame.writeTo(block.table).option("mergeSchema", "true").append()
        raise AbandonedError
    assert ice.load().schema().column_names == ["id", "day"]
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        frame.writeTo(block.table).option("mergeSchema", "true").append()
        block.success()
    assert rows(spark, ice.name, "kind") == [*((id_, None) for id_ in range(5)), (5, "new"), (6, "new")]
    ice.check()


@pytest.mark.matrix
def test_a_dynamic_overwrite_replaces_the_days_that_it_brings(spark: SparkSession, ice: Ice) -> None:
    """It uses hidden partitions, which no statement names."""
    frame = spark.range(102, 104, 1, 1).selectExpr("id", "date_add(DATE'2026-01-01', cast(id - 100 AS int)) AS day")
    with pytest.raises(AbandonedError), SafeWriter(spark, ice.name, format="iceberg") as block:
        frame.writeTo(block.table).overwritePartitions()
        raise AbandonedError
    assert ids(spark, ice.name) == list(range(5))
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        frame.writeTo(block.table).overwritePartitions()
        block.success()
    assert [day for _, day in rows(spark, ice.name, "day")][:1] == [dt.date(2026, 1, 1)]
    assert {day: id_ for id_, day in rows(spark, ice.name, "day")}[dt.date(2026, 1, 3)] == 102
