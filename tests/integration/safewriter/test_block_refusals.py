"""What a block refuses, before it begins or while it runs."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

import safewriter
from safewriter import SafeWriter
from safewriter.objects import s3 as objects
from soal.testing.s3.rules import Match, Refuse, Rule
from tests.integration.safewriter.appending import append, batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from soal.testing.s3.exchange import Reply, Request
    from tests.support.lake import Lake

pytestmark = pytest.mark.spark


def test_a_second_commit_in_one_block_is_refused_and_the_first_is_undone(spark: SparkSession, lake: Lake) -> None:
    """A block holds one commit; the error makes the block fail as a whole."""
    with pytest.raises(safewriter.UnsupportedError, match="one commit"), SafeWriter(spark, lake.table) as block:
        batch(spark).write.format("delta").mode("append").save(block.table)
        spark.sql(f"DELETE FROM delta.`{lake.table}` WHERE id = 1")
        block.success()
    assert lake.rows() == 0
    lake.check()


def test_a_write_after_success_is_refused(spark: SparkSession, lake: Lake) -> None:
    """A declared success, here that there is nothing to write, does not change any more."""
    append(spark, lake, 5, "base")
    with pytest.raises(Exception, match="success\\(\\) was called"), SafeWriter(spark, lake.table, step="n") as block:
        block.success(no_change=True)
        batch(spark).write.format("delta").mode("append").save(block.table)
    assert lake.rows() == 5
    lake.check()


def test_a_refusal_that_the_script_has_handled_does_not_hide_its_own_error(spark: SparkSession, lake: Lake) -> None:
    """The caller sees the exception that ended the block."""
    append(spark, lake, 5, "base")
    with pytest.raises(ZeroDivisionError), SafeWriter(spark, lake.table, step="n") as block:
        with contextlib.suppress(Exception):
            batch(spark).write.format("delta").mode("overwrite").save(block.table)
        _ = 1 / 0


def test_a_cell_that_reads_as_a_refusal_passes_for_none(spark: SparkSession, lake: Lake) -> None:
    """Spark's error quotes a cell that cannot be cast: the script gets that error."""
    cells = spark.range(1).selectExpr("cast(concat('SafeWriter [late]: no time', id) as int) as id")
    with (
        pytest.raises(Exception, match=r"SafeWriter \[late\]") as told,
        SafeWriter(spark, lake.table, step="c") as block,
    ):
        cells.write.format("delta").mode("append").save(block.table)
    assert not isinstance(told.value, safewriter.SafeWriterError)


def test_a_bucket_that_does_not_exist_is_named_before_anything_is_written(spark: SparkSession, lake: Lake) -> None:
    """Hadoop's exception would name the guard's inside."""
    block = SafeWriter(spark, "s3a://nobodys-bucket/t")
    with (
        pytest.raises(safewriter.UsageError, match=r"nothing was written: the bucket of s3a?://nobodys-bucket/t"),
        block,
    ):
        pass
    assert lake.documents() == []


@pytest.mark.parametrize("header", ["HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH"])
def test_a_server_that_ignores_conditions_gets_no_write(
    spark: SparkSession, lake: Lake, s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch, header: str
) -> None:
    """Two jobs could own one write there: the error names the server, and nothing is left."""
    monkeypatch.setattr(objects, "_KEEPING", set())

    def ignoring(request: Request) -> Reply:
        request.environ.pop(header, None)
        return request.apply()

    s3.wire.add(Rule(Match(operations={"PutObject"}), ignoring, times=None))
    with (
        pytest.raises(safewriter.UnsupportedError, match=f"nothing was written: {s3.endpoint} ignores"),
        SafeWriter(spark, lake.table),
    ):
        pass
    s3.wire.clear_rules()
    assert lake.documents() == []
    lake.check()


@pytest.mark.parametrize("swallows", [False, True])
def test_a_table_that_the_role_may_not_write_leaves_nothing_open(
    spark: SparkSession, lake: Lake, s3: EmbeddedS3, *, swallows: bool
) -> None:
    """S3 denies the commit, and would deny a fence: the block is rolled back without one, and names the right."""
    append(spark, lake, 5, "base")
    s3.wire.add(Rule(Match(key=f"{lake.name}/", is_mutating=True), Refuse(403), times=None))
    error = safewriter.UsageError if swallows else safewriter.StoreError
    with pytest.raises(error, match="allow s3:PutObject"), SafeWriter(spark, lake.table, step="n") as block:
        with contextlib.suppress(*([Exception] if swallows else [])):
            spark.sql(f"DELETE FROM delta.`{lake.table}`")
        block.success(no_change=True)
    s3.wire.clear_rules()
    (document,) = (one for one in lake.documents() if one.step == "n")
    assert (document.status, lake.version()) == ("rolled_back", 0)


def test_a_block_is_entered_once_and_succeeds_inside(spark: SparkSession, lake: Lake) -> None:
    """A second entry and a late `success()` are errors of the caller, and change nothing."""
    block = append(spark, lake)
    with pytest.raises(safewriter.UsageError, match="once"):
        block.__enter__()
    with SafeWriter(spark, lake.table, step="two") as other:
        pass
    with pytest.raises(safewriter.UsageError, match="inside"):
        other.success()
    assert lake.rows() == 10


def test_a_path_that_spark_reads_otherwise_is_refused(spark: SparkSession, lake: Lake) -> None:
    """Hadoop resolves dots, but S3 does not."""
    with pytest.raises(safewriter.UnsupportedError, match=r"'\.\.'"):
        SafeWriter(spark, f"{lake.table}/../other")


def test_a_block_that_writes_another_table_is_not_a_success(spark: SparkSession, lake: Lake) -> None:
    """The error names the written table."""
    with pytest.raises(safewriter.NotCommittedError, match="elsewhere"), SafeWriter(spark, lake.table) as block:
        batch(spark).write.format("delta").mode("append").save(f"{lake.table}-elsewhere")
        block.success()
    assert lake.document().status == "rolled_back"


def test_two_blocks_on_one_table_need_a_step(spark: SparkSession, lake: Lake) -> None:
    """An ordinal would match other data on a retry; a block that left nothing may be repeated."""
    with pytest.raises(RuntimeError), SafeWriter(spark, lake.table):
        raise RuntimeError
    append(spark, lake)
    with pytest.raises(safewriter.StepError, match="step"):
        append(spark, lake)
    append(spark, lake, step="second")
    assert lake.rows() == 20


def test_a_session_without_the_log_store_is_refused_with_the_remedy(spark: SparkSession, lake: Lake) -> None:
    """For the scheme s3n this session has no log store of SoAL's, and the guard checks that."""
    with pytest.raises(safewriter.UnguardedSessionError, match=r"s3n\.impl is not set.*configure_spark"):
        SafeWriter(spark, lake.table.replace("s3a://", "s3n://")).__enter__()
    assert lake.documents() == []
