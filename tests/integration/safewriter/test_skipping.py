"""A retry whose write is committed: its statement lands nowhere, whatever it is, and the job goes on."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

import safewriter
from safewriter import SafeWriter
from tests.support.attempts import next_attempt
from tests.support.hygiene import wait_for_hygiene

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from tests.support.lake import Lake

pytestmark = pytest.mark.spark


def append(spark: SparkSession, table: str, rows: int) -> None:
    spark.range(0, rows, 1, 1).write.format("delta").mode("append").save(table)


def commit(spark: SparkSession, table: str) -> None:
    """Commit like the first attempt."""
    with SafeWriter(spark, table) as block:
        append(spark, block.table, 3)
        block.success()


def ctas(spark: SparkSession, table: str, name: str) -> None:
    spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{table}' AS SELECT * FROM range(3)")


def create(spark: SparkSession, table: str, _: str) -> None:
    spark.range(3).writeTo(f"delta.`{table}`").using("delta").create()


def save_as_table(spark: SparkSession, table: str, name: str) -> None:
    spark.range(3).write.format("delta").option("path", table).saveAsTable(name)


def own_transaction(spark: SparkSession, table: str, _: str) -> None:
    version = spark.conf.get("test.version")
    frame = spark.range(3).write.format("delta").mode("append")
    frame.option("txnAppId", "the script's").option("txnVersion", str(version)).save(table)


@pytest.fixture
def name(spark: SparkSession) -> str:
    found = f"t_{uuid.uuid4().hex[:8]}"
    spark.conf.set("test.version", "1")
    return found


@pytest.mark.parametrize(
    ("statement", "is_known"),
    [
        (ctas, True),
        pytest.param(ctas, False, marks=pytest.mark.matrix),
        (create, True),
        (save_as_table, False),
        (own_transaction, True),
    ],
)
def test_a_statement_that_delta_does_not_skip_ends_the_block_without_an_error(
    spark: SparkSession,
    lake: Lake,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    statement: Callable[[SparkSession, str, str], None],
    is_known: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """It reports that the table exists, or the gate refuses its commit; both mean that the write is done."""
    with SafeWriter(spark, lake.table) as block:
        statement(spark, block.table, name)
        block.success()
    assert lake.rows() == 3
    next_attempt(monkeypatch)
    spark.conf.set("test.version", "2")
    if not is_known:
        spark.sql(f"DROP TABLE IF EXISTS {name}")

    with SafeWriter(spark, lake.table) as again:
        statement(spark, again.table, name)
        pytest.fail("the statement was to be refused, or to find the table")

    assert again.already_committed
    assert (lake.rows(), lake.document().status) == (3, "committed")
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    append(spark, lake.table, 1)
    assert lake.rows() == 4


def test_a_table_that_was_made_anew_is_not_written_by_the_retry(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta has no record of the transaction there, but the document still holds."""
    commit(spark, lake.table)
    wait_for_hygiene()
    keys = lake.keys()
    for key in keys:
        lake.store.delete(key)
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    append(spark, lake.table, 5)
    next_attempt(monkeypatch)

    with SafeWriter(spark, lake.table) as again:
        append(spark, again.table, 3)
        pytest.fail("the gate was to refuse it")

    assert again.already_committed
    assert lake.rows() == 5


def test_any_other_error_in_a_skipped_block_goes_on(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The error that another table exists already, one about a cell that reads as a refusal, and the script's own."""
    commit(spark, lake.table)
    ctas(spark, f"{lake.table}-other", name)
    next_attempt(monkeypatch)
    with pytest.raises(Exception, match="TABLE_OR_VIEW_ALREADY_EXISTS"), SafeWriter(spark, lake.table):
        ctas(spark, f"{lake.table}-other", name)
    next_attempt(monkeypatch)
    skipped = "SafeWriter [x]: this write was committed by an earlier attempt"
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"), SafeWriter(spark, lake.table):
        spark.sql(f"SELECT cast('{skipped}' AS int)").collect()
    next_attempt(monkeypatch)
    with pytest.raises(ZeroDivisionError), SafeWriter(spark, lake.table) as block:
        _ = 1 / 0
    assert block.already_committed
    spark.sql(f"DROP TABLE {name}")


def test_a_copy_of_a_skipped_blocks_session_writes_its_own_blocks(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example a stream's copy for its batches: with the copied mark Delta would skip them."""
    commit(spark, lake.table)
    next_attempt(monkeypatch)
    with SafeWriter(spark, lake.table) as skipped:
        append(spark, skipped.table, 3)
        skipped.success()
        other = spark.newSession()
        for key in ("txnAppId", "txnVersion", "txnVersion.autoReset.enabled"):
            name = f"spark.databricks.delta.write.{key}"
            other.conf.set(name, str(spark.conf.get(name)))
    with SafeWriter(other, lake.table, step="of its own") as block:
        append(other, block.table, 10)
        block.success()
    assert lake.rows() == 13


@pytest.mark.parametrize(
    "first", [pytest.param("fails before it writes", marks=pytest.mark.matrix), "fails after it has written"]
)
def test_a_table_inside_the_guarded_one_keeps_its_files(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """Its files have the block's prefix, since the session gives it to all files."""
    append(spark, lake.table, 5)
    rejects = f"{lake.table}/_rejects"
    with pytest.raises(ZeroDivisionError), SafeWriter(spark, lake.table) as block:
        if "after" in first:
            append(spark, rejects, 10)
            append(spark, block.table, 3)
        _ = 1 / 0
    wait_for_hygiene()
    assert lake.rows() == 5
    next_attempt(monkeypatch)
    with SafeWriter(spark, lake.table) as block:
        append(spark, rejects, 10)
        append(spark, block.table, 3)
        block.success()
    wait_for_hygiene()

    assert lake.rows() == 8
    assert spark.read.format("delta").load(rejects).count() == (20 if "after" in first else 10)
    assert spark.range(1).crossJoin(spark.read.format("delta").load(rejects)).collect()


def test_a_scheme_by_which_the_table_can_be_reached_unguarded_is_refused(spark: SparkSession, lake: Lake) -> None:
    """A catalog may know the table by it: the write would bypass the gate, and the block end with "no change"."""
    files = spark._jsparkSession.sparkContext().hadoopConfiguration()
    files.set("fs.s3n.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem")
    try:
        with pytest.raises(safewriter.UnguardedSessionError, match=r"logStore\.s3n\.impl is not set"):
            SafeWriter(spark, lake.table).__enter__()
    finally:
        files.unset("fs.s3n.impl")


def test_a_process_that_was_forked_off_in_a_block_does_not_end_it(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that leaves by sys.exit() would undo its parent's commit."""
    block = SafeWriter(spark, lake.table).__enter__()
    append(spark, block.table, 3)
    with monkeypatch.context() as child:
        child.setattr("os.getpid", lambda: 1)
        block.__exit__(SystemExit, SystemExit(), None)
    assert lake.document().status == "in_progress"
    block.success()
    block.__exit__(None, None, None)
    assert (lake.document().status, lake.rows()) == ("committed", 3)
