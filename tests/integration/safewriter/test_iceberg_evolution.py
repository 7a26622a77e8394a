"""Branches of a table, and tables that change their schema and their partitioning, under a guarded block."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from safewriter import NotCommittedError, SafeWriter, UnsupportedError
from tests.support.hygiene import wait_for_hygiene

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from scripts.emulator.s3 import EmbeddedS3
    from tests.support.ice import Catalog, Ice
    from tests.support.lake import Lake

pytestmark = [pytest.mark.spark]


class AbandonedError(Exception):
    """What a script raises in its block."""


@pytest.fixture
def ice(spark: SparkSession, s3: EmbeddedS3, lite: Catalog, lake: Lake) -> Ice:
    """A table with five rows, of 1 to 5 January 2026, partitioned by the day and by a bucket of the id."""
    del lake  # whose fixture says where checkpoints lie
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


def test_a_write_for_a_branch_reaches_that_branch_and_nothing_else(spark: SparkSession, ice: Ice) -> None:
    """A failed block leaves it as it was, the next one adds to it; main shows neither."""
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
    wait_for_hygiene()
    assert ice.orphans() == set()


@pytest.mark.matrix
def test_a_branch_that_is_not_there_is_refused(spark: SparkSession, ice: Ice) -> None:
    """With the statement that makes it; so is a tag of that name."""
    spark.sql(f"ALTER TABLE {ice.name} CREATE TAG release")
    for name in ("audit", "release"):
        with (
            pytest.raises(UnsupportedError, match=f"CREATE BRANCH `{name}`"),
            SafeWriter(spark, f"{ice.name}.branch_{name}", format="iceberg"),
        ):
            pass


@pytest.mark.matrix
@pytest.mark.parametrize("named", ["main", "audit"])
def test_a_statement_that_names_the_branch_itself_goes_past_the_guard_and_is_taken_back(
    spark: SparkSession, ice: Ice, named: str
) -> None:
    """For Iceberg on Spark 4.1 a branch in a name comes before the session's: success() sees it, and refuses."""
    spark.sql(f"ALTER TABLE {ice.name} CREATE BRANCH audit")
    guarded = ice.name if named == "main" else f"{ice.name}.branch_audit"
    with (
        pytest.raises(NotCommittedError, match=f"past its branch into {named}"),
        SafeWriter(spark, guarded, format="iceberg") as block,
    ):
        append(spark, f"{ice.name}.branch_{named}", 5, 8)
        block.success()
    assert (ids(spark, ice.name), ids(spark, f"{ice.name}.branch_audit")) == (list(range(5)), list(range(5)))
    assert ice.refs() == {"main", "audit"}


@pytest.mark.matrix
def test_what_replaces_the_table_in_a_block_for_a_branch_leaves_main_as_it_was(spark: SparkSession, ice: Ice) -> None:
    """It takes main away, and the block that fails puts it back."""
    spark.sql(f"ALTER TABLE {ice.name} CREATE BRANCH audit")
    append(spark, ice.name, 5, 6)
    with (
        pytest.raises(AbandonedError),
        SafeWriter(spark, f"{ice.name}.branch_audit", format="iceberg") as block,
    ):
        spark.sql(f"CREATE OR REPLACE TABLE {block.table} USING iceberg AS SELECT 1L AS id, current_date() AS day")
        raise AbandonedError
    assert ids(spark, ice.name) == list(range(6))
    assert ids(spark, f"{ice.name}.branch_audit") == list(range(5))


@pytest.mark.matrix
def test_a_column_that_a_block_adds_stays_and_its_rows_count_only_with_success(spark: SparkSession, ice: Ice) -> None:
    """A schema belongs to the table, not to a branch."""
    with pytest.raises(AbandonedError), SafeWriter(spark, ice.name, format="iceberg") as block:
        spark.sql(f"ALTER TABLE {block.table} ADD COLUMN kind STRING")
        append(spark, block.table, 5, 8, "'new' AS kind")
        raise AbandonedError
    assert rows(spark, ice.name, "kind") == [(id_, None) for id_ in range(5)]
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 6, "'new' AS kind")
        spark.sql(f"ALTER TABLE {block.table} RENAME COLUMN kind TO sort")
        append(spark, block.table, 6, 7, "'newer' AS sort")
        block.success()
    found = rows(spark, ice.name, "sort")
    assert found == [*((id_, None) for id_ in range(5)), (5, "new"), (6, "newer")]


@pytest.mark.matrix
def test_columns_that_a_write_brings_along_are_added(spark: SparkSession, ice: Ice) -> None:
    """`mergeSchema`, also on a main that has moved meanwhile."""
    spark.sql(f"ALTER TABLE {ice.name} SET TBLPROPERTIES ('write.spark.accept-any-schema' = 'true')")
    frame = spark.range(5, 7, 1, 1).selectExpr("id", "DATE'2026-02-01' AS day", "'new' AS kind")
    other = spark.newSession()
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        frame.writeTo(block.table).option("mergeSchema", "true").append()
        known(other, ice)
        append(other, ice.name, 20, 21, "'theirs' AS kind")
        block.success()
    assert rows(spark, ice.name, "kind")[5:] == [(5, "new"), (6, "new"), (20, "theirs")]
    ice.check()


def known(session: SparkSession, ice: Ice) -> None:
    for key, value in ice.catalog.settings().items():
        session.conf.set(key, value)


@pytest.mark.matrix
def test_rows_of_both_partitionings_of_a_block_land_as_one(spark: SparkSession, ice: Ice) -> None:
    """A spec belongs to the table, as a schema does; the append names files of two, also when it is applied again."""
    other = spark.newSession()
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 6)
        spark.sql(f"ALTER TABLE {block.table} REPLACE PARTITION FIELD day_day WITH months(day)")
        append(spark, block.table, 6, 8)
        known(other, ice)
        append(other, ice.name, 20, 21)
        block.success()
    assert ids(spark, ice.name) == [*range(8), 20]
    assert {file.spec_id for file in spark.table(f"{ice.name}.files").collect()} == {0, 1}
    assert spark.table(ice.name).where("day = DATE'2026-01-07'").count() == 1, "pruned by either partitioning"
    spark.sql(f"DELETE FROM {ice.name} WHERE id = 5")  # Spark reads and rewrites what was applied without it
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4, 6, 7, 20]
    ice.check()


@pytest.mark.matrix
def test_a_dynamic_overwrite_replaces_the_days_that_it_brings(spark: SparkSession, ice: Ice) -> None:
    """By hidden partitions, which no statement names."""
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
    wait_for_hygiene()
    assert ice.orphans() == set()
