"""A guarded block on an Iceberg table: real Spark, catalogs of each kind, the embedded S3.

Glue is moto's, which checks no version of a table; the tests add that (tests/support/glue_versions.py).
"""

from __future__ import annotations

import itertools
import uuid
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from safewriter import SafeWriter, UnsupportedError
from safewriter.deadline import epoch_ms
from soal.testing.s3 import Match, Rule
from tests.integration.safewriter.ice_rows import (
    COLUMNS,
    MATCHED,
    MODES,
    STATEMENTS,
    AbandonedError,
    append,
    foreign,
    ids,
)
from tests.support.network_faults import Freeze

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.ice import Ice

pytestmark = [pytest.mark.spark]

FORMATS = [1, 2, 3]
SHORT = {("append", "copy-on-write", 2), ("merge", "merge-on-read", 3), ("update", "copy-on-write", 1)}
"""The selection for scripts/test; the others run in the matrix."""


@pytest.mark.parametrize(
    ("name", "mode", "version"),
    [
        pytest.param(*case, marks=() if case in SHORT else pytest.mark.matrix)
        for case in itertools.product(STATEMENTS, MODES, FORMATS)
        if case[1:] != ("merge-on-read", 1)
    ],
)
def test_an_operation_is_dropped_by_a_failed_block_and_published_by_the_next(
    spark: SparkSession, ice: Ice, name: str, mode: str, version: int
) -> None:
    """The block sees its own rows, and main only one snapshot of the retry."""
    statement, after = STATEMENTS[name]
    spark.sql(f"DROP TABLE {ice.name}")
    spark.sql(
        f"CREATE TABLE {ice.name} {COLUMNS} TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' ="
        f" '{mode}', 'write.update.mode' = '{mode}', 'write.merge.mode' = '{mode}')"
    )
    append(spark, ice.name, 0, 5)
    with pytest.raises(AbandonedError), SafeWriter(spark, ice.name, format="iceberg") as block:
        spark.sql(statement.format(table=block.table, matched=MATCHED))
        assert ids(spark, block.table) == after, "the block sees its own rows"
        raise AbandonedError
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4]
    assert len(ice.history()) == 1
    ice.check()

    with SafeWriter(spark, ice.name, format="iceberg") as block:
        spark.sql(statement.format(table=block.table, matched=MATCHED))
        assert len(ice.history()) == 1, "nothing is visible before success()"
        block.success()
    assert ids(spark, ice.name) == after
    assert len(ice.history()) == 2
    assert ice.document().status == "committed"
    assert ice.refs() == {"main"}
    assert mode == "merge-on-read" or ice.rows() == len(after)
    ice.check()


def test_frames_are_staged_by_every_way_to_write_them(spark: SparkSession, ice: Ice) -> None:
    """Each of Spark's interfaces accepts the block's name, and everything is published as one."""
    frame = spark.range(5, 6, 1, 1).selectExpr("id", "'a' AS part")
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        frame.writeTo(block.table).append()
        frame.write.mode("append").insertInto(block.table)
        frame.write.mode("append").saveAsTable(block.table)
        frame.write.format("iceberg").mode("append").save(block.table)
        assert ice.rows() == 5
        block.success()
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4, 5, 5, 5, 5]
    assert ice.document().attempt.rows == 4
    ice.check()


def test_nothing_of_a_table_changes_but_its_rows_and_the_mark(spark: SparkSession, ice: Ice) -> None:
    """No property holds the block's number of attempts, also where the table has one of its own."""
    spark.sql(f"ALTER TABLE {ice.name} SET TBLPROPERTIES ('commit.retry.num-retries' = '3')")
    before = ice.load()
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        block.success()
    after = ice.load()
    mark = "safewriter." + ice.document().attempt.prefix.rstrip("-")
    assert after.properties.pop(mark).split()[:2] == [str(ice.document().attempt.commit_version), "3"]
    assert after.properties == before.properties
    assert after.metadata.refs.keys() == before.metadata.refs.keys()
    assert (after.schema(), after.spec(), after.sort_order()) == (before.schema(), before.spec(), before.sort_order())


@pytest.mark.parametrize("ice", ["lite"], indirect=True)
def test_a_publication_removes_the_marks_that_are_older_than_a_week_and_no_others(
    spark: SparkSession, ice: Ice
) -> None:
    """A settler relies on a mark for six days: without it the write would be rolled back, and written twice."""
    now_ms, day_ms = epoch_ms(), 24 * 60 * 60 * 1000
    marks = {f"safewriter.sw-{days}-1": f"1 1 1 {now_ms - days * day_ms}" for days in (0, 6, 8)}
    marks["safewriter.note"] = "not a mark"
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in marks.items())
    spark.sql(f"ALTER TABLE {ice.name} SET TBLPROPERTIES ({listed})")
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 6)
        block.success()
    del marks["safewriter.sw-8-1"]
    own = "safewriter." + ice.document().attempt.prefix.rstrip("-")
    kept = {name for name in ice.load().properties if name.startswith("safewriter.")}
    assert kept == {*marks, own}


@pytest.mark.parametrize("ice", ["lite"], indirect=True)  # a REST server reads the files itself
def test_a_guarded_append_reads_no_list_of_its_own_and_no_metadata_twice(
    spark: SparkSession, s3: EmbeddedS3, ice: Ice
) -> None:
    """On a table that the session knows, a block reads only the metadata file that the previous one has written."""
    for turn in range(2):
        with SafeWriter(spark, ice.name, format="iceberg", step=str(turn)) as block:
            s3.wire.clear_trace()
            append(spark, block.table, 5 + turn, 6 + turn)
            block.success()
    read = [one.key for one in s3.trace() if one.operation == "GetObject"]
    assert [key for key in read if "/snap-" in key] == []
    assert len({key for key in read if key.endswith(".metadata.json")}) <= 1
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4, 5, 6]
    ice.check()


def test_a_publication_is_seen_by_the_session_s_cached_frames(spark: SparkSession, ice: Ice) -> None:
    """As after a plain append, whichever object the session has used to read the table."""
    cached = spark.table(ice.name).cache()
    try:
        assert cached.count() == 5
        for turn, other in enumerate((False, True)):
            with SafeWriter(spark, ice.name, format="iceberg", step=str(turn)) as block:
                append(spark, block.table, 5 + turn, 6 + turn)
                if other:
                    spark.catalog.refreshTable(ice.name)
                    assert spark.table(ice.name).count() == 6
                block.success()
            assert spark.table(ice.name).count() == 6 + turn
    finally:
        cached.unpersist()


def test_a_failed_block_commits_nothing_to_its_catalog(spark: SparkSession, ice: Ice) -> None:
    """Nothing was sent that could arrive, so no fence is needed."""
    before = ice.load().metadata_location
    with pytest.raises(AbandonedError), SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        raise AbandonedError
    assert ice.load().metadata_location == before


def test_an_empty_table_is_filled(spark: SparkSession, ice: Ice) -> None:
    """A table without a snapshot."""
    spark.sql(f"DROP TABLE {ice.name}")
    spark.sql(f"CREATE TABLE {ice.name} {COLUMNS}")
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        block.success()
    assert ids(spark, ice.name) == [5, 6, 7]
    ice.check()


@pytest.mark.parametrize("ice", ["rest"], indirect=True)
def test_an_empty_table_that_others_fill_at_once_gets_no_snapshot_of_ours(
    spark: SparkSession, s3: EmbeddedS3, ice: Ice
) -> None:
    """Of eight blocks that begin on an empty table at once, each would use up Iceberg's four attempts."""
    spark.sql(f"DROP TABLE {ice.name}")
    spark.sql(f"CREATE TABLE {ice.name} {COLUMNS}")
    rule = s3.wire.add(Rule(Match(operations={"CatalogChange"}), Freeze(lambda: foreign(spark, ice, 20, 22))))
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        block.success()
    assert rule.hits == 1
    assert ids(spark, ice.name) == [5, 6, 7, 20, 21]
    assert len(ice.history()) == 2
    ice.check()


def test_names_that_need_backticks_are_guarded(spark: SparkSession, ice: Ice) -> None:
    """A hyphen, a dot, a backtick; the checkpoint finds the table by the same name."""
    name = f"{ice.catalog.name}.db.`my-{uuid.uuid4().hex}.``t`"
    spark.sql(f"CREATE TABLE {name} (id LONG, part STRING) USING iceberg")
    with SafeWriter(spark, name, format="iceberg") as block:
        append(spark, block.table, 5, 8)
        block.success()
    assert sorted(row.id for row in spark.table(name).collect()) == [5, 6, 7]
    assert block.checkpoint is not None
    assert block.checkpoint.table == name


def test_a_table_that_is_not_there_is_refused_with_the_way_to_create_it(spark: SparkSession, ice: Ice) -> None:
    """The refusal comes before the claim, so that no document stays open for a missing table."""
    with pytest.raises(UnsupportedError, match="CREATE TABLE IF NOT EXISTS"):
        SafeWriter(spark, f"{ice.name}_new", format="iceberg").__enter__()
    assert ice.documents() == []


def test_columns_of_a_frame_become_visible_with_its_rows(spark: SparkSession, ice: Ice) -> None:
    """`mergeSchema` adds them in the transaction, too."""
    spark.sql(f"ALTER TABLE {ice.name} SET TBLPROPERTIES ('write.spark.accept-any-schema' = 'true')")
    frame = spark.range(5, 6, 1, 1).selectExpr("id", "'a' AS part", "1 AS extra")
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        frame.writeTo(block.table).option("mergeSchema", "true").append()
        assert "extra" not in ice.load().schema().column_names
        block.success()
    assert ice.load().schema().column_names == ["id", "part", "extra"]
    ice.check()


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE {table} ADD COLUMN more STRING",
        "ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')",
        "ALTER TABLE {table} ADD PARTITION FIELD truncate(2, part)",
        "ALTER TABLE {table} WRITE ORDERED BY id",
        "ALTER TABLE {table} CREATE BRANCH other",
        "DROP TABLE {table}",
        "CREATE OR REPLACE TABLE {table} (id LONG) USING iceberg",
    ],
)
def test_what_is_no_write_of_rows_is_refused_inside_a_block(spark: SparkSession, ice: Ice, statement: str) -> None:
    """It could not be published with the rows, so it must be done before or after."""
    before = ice.load().metadata_location
    with pytest.raises(Exception, match=r"before or after|before the block|cannot be|not supported|not support|Cannot"):  # noqa: SIM117
        with SafeWriter(spark, ice.name, format="iceberg") as block:
            spark.sql(statement.format(table=block.table))
            block.success()
    assert ice.load().metadata_location == before


def test_a_statement_finds_no_table_once_its_block_has_ended(spark: SparkSession, ice: Ice) -> None:
    """The name belongs to the block, and ends with it."""
    with SafeWriter(spark, ice.name, format="iceberg") as block:
        append(spark, block.table, 5, 6)
        block.success()
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        append(spark, block.table, 5, 8)


def test_a_branch_is_written_and_main_is_not(spark: SparkSession, ice: Ice) -> None:
    """The block's table names it, too."""
    spark.sql(f"ALTER TABLE {ice.name} CREATE BRANCH audit")
    with SafeWriter(spark, f"{ice.name}.branch_audit", format="iceberg") as block:
        append(spark, block.table, 5, 8)
        spark.sql(f"DELETE FROM {block.table} WHERE id = 6")
        block.success()
    assert ids(spark, f"{ice.name}.branch_audit") == [0, 1, 2, 3, 4, 5, 7]
    assert ids(spark, ice.name) == [0, 1, 2, 3, 4]
