"""Statements that write the table of an open block past the block, whatever signature their snapshots have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter import NotCommittedError, SafeWriter
from safewriter.record.journal import Journal
from tests.integration.safewriter.ice_rows import AbandonedError, append, elsewhere, ids, session_of
from tests.support.lake import LAKE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.ice import Ice

pytestmark = [pytest.mark.spark, pytest.mark.parametrize("ice", ["lite"], indirect=True)]


def _add_files(spark: SparkSession, ice: Ice) -> None:
    catalog, _, table = ice.name.partition(".")
    folder = f"s3a://{LAKE}/{catalog}/plain-{table}"
    spark.sql(f"CALL {catalog}.system.add_files(table => '{table}', source_table => '`parquet`.`{folder}`')")


def _cherry_pick(spark: SparkSession, ice: Ice) -> None:
    catalog, _, table = ice.name.partition(".")
    (staged,) = {one.snapshot_id for one in ice.load().metadata.snapshots} - {
        one.snapshot_id for one in ice.snapshots()
    }
    spark.sql(f"CALL {catalog}.system.cherrypick_snapshot('{table}', {staged})")


def _java(spark: SparkSession, ice: Ice) -> None:
    jvm = spark._jvm
    assert jvm is not None
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, ice.name)
    table.newDelete().deleteFromRowFilter(jvm.org.apache.iceberg.expressions.Expressions.alwaysTrue()).commit()


def _by_name(spark: SparkSession, ice: Ice) -> None:
    append(spark, ice.name, 20, 22)


def _on_a_thread(spark: SparkSession, ice: Ice) -> None:
    elsewhere(lambda: append(spark, ice.name, 20, 22))


def _in_another_session(spark: SparkSession, ice: Ice) -> None:
    append(session_of(spark, ice), ice.name, 20, 22)


STRAYS: list[Callable[[SparkSession, Ice], None]] = [
    _by_name, _on_a_thread, _add_files, _cherry_pick, _java,
]  # fmt: skip


@pytest.fixture
def table(spark: SparkSession, ice: Ice) -> Ice:
    """A flat table, with Parquet files beside it and a staged snapshot that main has left behind."""
    catalog, _, table = ice.name.partition(".")
    spark.sql(f"DROP TABLE {ice.name}")
    spark.sql(f"CREATE TABLE {ice.name} (id LONG, part STRING) USING iceberg")
    append(spark, ice.name, 0, 5)
    spark.range(20, 22, 1, 1).selectExpr("id", "'a' AS part").write.parquet(f"s3a://{LAKE}/{catalog}/plain-{table}")
    spark.sql(f"ALTER TABLE {ice.name} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    spark.conf.set("spark.wap.id", "audit")
    try:
        append(spark, ice.name, 20, 22)
    finally:
        spark.conf.unset("spark.wap.id")
    append(spark, ice.name, 5, 6)
    return ice


@pytest.mark.parametrize("stray", STRAYS)
def test_a_block_with_a_statement_past_it_is_not_committed(
    spark: SparkSession, table: Ice, stray: Callable[[SparkSession, Ice], None]
) -> None:
    """Its rows stay, so no retry helps: each would write them again."""
    with (
        pytest.raises(NotCommittedError, match=r"snapshot \d+ past the block.* rows stay"),
        SafeWriter(spark, table.name, format="iceberg") as block,
    ):
        append(spark, block.table, 30, 31)
        stray(spark, table)
        block.success()
    assert 30 not in ids(spark, table.name)
    assert table.document().status == "rolled_back"


def test_a_block_that_fails_behind_such_a_statement_says_what_stays(
    spark: SparkSession, table: Ice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script's own exception gets a note, and the journal a line at once, in case the job is killed."""
    journal = tmp_path / "journal"
    monkeypatch.setenv("SOAL_JOURNAL", str(journal))
    with Journal(journal) as lines:
        with pytest.raises(AbandonedError) as raised, SafeWriter(spark, table.name, format="iceberg") as block:
            _add_files(spark, table)
            (line,) = [one for one in lines.entries() if one.event == "stray"]
            raise AbandonedError
        assert line.fields["nonce"] == table.document().owner
    stray = table.snapshots()[-1].snapshot_id
    assert f"snapshot {stray} past the block" in line.fields["reason"]
    assert f"snapshot {stray} past the block" in str(block._block.session.report().strays)
    assert f"snapshot {stray} past the block" in "".join(raised.value.__notes__)


def test_a_commit_of_another_writer_in_the_same_process_is_no_stray(spark: SparkSession, table: Ice) -> None:
    """Another session of the application, on another thread or the block's own: a service beside the job."""
    spark.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    with SafeWriter(spark, table.name, format="iceberg") as block:
        append(spark, block.table, 30, 31)
        elsewhere(lambda: session_of(spark, table).sql(f"DELETE FROM {table.name} WHERE id = 1"))
        session_of(spark, table).sql(f"DELETE FROM {table.name} WHERE id = 2")
        block.success()
    assert ids(spark, table.name) == [0, 3, 4, 5, 30]
    assert table.document().status == "committed"


def test_a_statement_of_another_session_was_the_block_s_own_where_that_has_none(
    spark: SparkSession, table: Ice
) -> None:
    """For example a frame in foreachBatch, which belongs to a copy of the session."""
    with (
        pytest.raises(NotCommittedError, match=r"snapshot \d+ past the block.* rows stay"),
        SafeWriter(spark, table.name, format="iceberg") as block,
    ):
        _in_another_session(spark, table)
        block.success()
    assert table.document().status == "rolled_back"
    assert table.document().incomplete is not None


def test_commits_to_other_tables_and_compactions_are_no_strays(spark: SparkSession, table: Ice) -> None:
    """Neither is a commit to another branch."""
    catalog, _, name = table.name.partition(".")
    other = f"{table.name}_other"
    spark.sql(f"CREATE TABLE {other} (id LONG, part STRING) USING iceberg")
    spark.sql(f"ALTER TABLE {table.name} CREATE BRANCH audit")
    with SafeWriter(spark, table.name, format="iceberg") as block:
        append(spark, block.table, 30, 31)
        append(spark, other, 0, 1)
        append(spark, f"{table.name}.branch_audit", 0, 1)
        spark.sql(f"CALL {catalog}.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")
        block.success()
    assert ids(spark, table.name) == [0, 1, 2, 3, 4, 5, 30]


def test_a_statement_after_the_block_is_none_of_its_own(spark: SparkSession, table: Ice) -> None:
    """Neither is one before it."""
    append(spark, table.name, 6, 7)
    with SafeWriter(spark, table.name, format="iceberg") as block:
        append(spark, block.table, 30, 31)
        block.success()
        append(spark, table.name, 7, 8)
    assert ids(spark, table.name) == [0, 1, 2, 3, 4, 5, 6, 7, 30]
