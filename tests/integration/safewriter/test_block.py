"""SafeWriter blocks on real Delta tables: how blocks end, and what a reader other than Spark then sees."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

import safewriter
from safewriter import SafeWriter
from safewriter.record.checkpoints import FINISHED
from soal.testing.s3.rules import Delay, Match, Rule
from tests.integration.safewriter.appending import append, batch
from tests.support.hygiene import wait_for_hygiene
from tests.support.lake import CHECKPOINTS
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.lake import Lake

pytestmark = pytest.mark.spark


def test_a_create_and_an_append_land_once_and_are_on_record(spark: SparkSession, s3: EmbeddedS3, lake: Lake) -> None:
    """Two blocks leave two versions, two committed documents with their figures, no marker, and a note that expires."""
    append(spark, lake, 10, "one")
    append(spark, lake, 5, "two")
    wait_for_hygiene()
    assert lake.rows() == 15
    assert lake.operations() == ["WRITE", "WRITE"]
    documents = {document.step: document for document in lake.documents()}
    assert {step: document.status for step, document in documents.items()} == {"one": "committed", "two": "committed"}
    assert documents["one"].attempt.version_before == -1
    assert (documents["two"].attempt.commit_version, documents["two"].attempt.rows) == (1, 5)
    assert all(lake.markers(document) == () for document in documents.values())
    note = lake.checkpoints.note_key(documents["one"].write_key, 1)
    tagged = s3.observer().get_object_tagging(Bucket=CHECKPOINTS, Key=note)["TagSet"]
    assert [f"{tag['Key']}={tag['Value']}" for tag in tagged] == [FINISHED]
    lake.check()


def test_three_requests_of_the_guard_are_waited_for(spark: SparkSession, s3: EmbeddedS3, lake: Lake) -> None:
    """Marker, document and verdict; in parallel with the marker the block lists the log, after the last known version.

    The commit is read back once, by another client than the one that writes the verdict.
    """
    append(spark, lake, 10, "one")
    wait_for_hygiene()
    s3.wire.clear_trace()
    with SafeWriter(spark, lake.table, step="two") as block:
        entered = [one for one in s3.trace() if one.key or one.operation == "ListObjectsV2"]
        batch(spark).write.format("delta").mode("append").save(block.table)
        block.success()
        trace = s3.trace()
    marker, document = [one for one in entered if one.bucket == CHECKPOINTS]
    (listing,) = [one for one in entered if one.bucket != CHECKPOINTS]
    assert (marker.key.split("/")[0], document.key.split("/")[0]) == ("open", "checkpoints")
    assert listing.started_ns < document.started_ns
    assert [one.key.split("/")[0] for one in trace if one.bucket == CHECKPOINTS] == [
        "open",
        "checkpoints",
        "checkpoints",
    ]
    assert [one.key[-25:] for one in trace if one.operation == "GetObject"] == [f"{1:020}.json"]


def test_a_slow_read_of_the_commit_is_waited_for(spark: SparkSession, s3: EmbeddedS3, lake: Lake) -> None:
    """The pending read answers before a second one would."""
    append(spark, lake, 10, "one")
    reads = Match(operations={"GetObject"}, key=rf"{1:020}\.json$")
    first, second = s3.wire.add(Rule(reads, Delay(1500))), s3.wire.add(Rule(reads, Delay(0), nth=2))
    append(spark, lake, 10, "two")
    s3.wire.clear_rules()
    assert (first.hits, second.hits) == (1, 0)


def test_an_exception_before_the_write_leaves_no_trace_in_the_table(spark: SparkSession, lake: Lake) -> None:
    """Nothing was sent, so no fence is needed: the table does not even exist."""
    with pytest.raises(RuntimeError), SafeWriter(spark, lake.table):
        raise RuntimeError
    wait_for_hygiene()
    assert lake.keys() == set()
    assert lake.document().status == "rolled_back"
    assert lake.markers(lake.document()) == ()


def test_an_exception_after_success_undoes_nothing(spark: SparkSession, lake: Lake) -> None:
    """A declared success is final."""
    with pytest.raises(RuntimeError), SafeWriter(spark, lake.table) as block:
        batch(spark).write.format("delta").mode("append").save(block.table)
        block.success()
        raise RuntimeError
    assert lake.rows() == 10
    assert lake.document().status == "committed"


def test_the_one_line_form_does_the_whole_thing(spark: SparkSession, lake: Lake) -> None:
    """A writer with all its options goes in, the document comes out."""
    document = safewriter.save(batch(spark).write.mode("append").partitionBy("part"), lake.table)
    assert (document.status, document.attempt.rows) == ("committed", 10)
    assert lake.rows() == 10


def test_a_block_without_a_write_needs_the_program_s_word(spark: SparkSession, lake: Lake) -> None:
    """A missing commit is no evidence that there was nothing to write."""
    append(spark, lake, 10, "one")
    with (
        pytest.raises(safewriter.NotCommittedError, match="no_change"),
        SafeWriter(spark, lake.table, step="a") as block,
    ):
        block.success()
    with pytest.raises(safewriter.UsageError, match="not true"), SafeWriter(spark, lake.table, step="b") as block:
        batch(spark, 3).write.format("delta").mode("append").save(block.table)
        block.success(no_change=True)
    with SafeWriter(spark, lake.table, step="c") as block:
        block.success(no_change=True)
    assert block.checkpoint is not None
    assert block.checkpoint.status == "committed"
    assert lake.rows() == 10
    lake.check()


@pytest.mark.parametrize("is_beside", [False, True])
def test_files_of_a_statement_behind_success_are_removed(spark: SparkSession, lake: Lake, *, is_beside: bool) -> None:
    """The gate refuses it, on the block's thread or on another one, and the document says clean when it is true."""
    refused: list[str] = []

    def late() -> None:
        try:
            batch(spark, 7).write.format("delta").mode("append").save(lake.table)
        except Exception as error:  # noqa: BLE001 - of Java's classes, as a thread raises them
            refused.append(str(error))

    with SafeWriter(spark, lake.table) as block:
        batch(spark, 3).write.format("delta").mode("append").save(block.table)
        block.success()
        if is_beside:
            thread = threading.Thread(target=late)
            thread.start()
            thread.join(BUSY_S)
        else:
            late()
    wait_for_hygiene()

    assert ["SafeWriter" in text for text in refused] == [True]
    assert lake.document().attempt.cleaned
    assert lake.orphans() == set()
    assert lake.rows() == 3


def test_files_of_a_failed_job_are_removed_from_every_partition(spark: SparkSession, lake: Lake) -> None:
    """A task fails after others have written: the table is unchanged, and no file of the job is left."""
    append(spark, lake, 9, "base")
    fails = F.udf(lambda number: 1 // (number - 8), "long")
    frame = spark.range(0, 9, 1, 9).withColumn("part", F.col("id") % 3).withColumn("id", fails("id"))
    with pytest.raises(Exception, match="ZeroDivisionError"), SafeWriter(spark, lake.table, step="fails") as block:
        frame.write.format("delta").mode("append").save(block.table)
    wait_for_hygiene()
    assert lake.rows() == 9
    assert lake.orphans() == set()
    assert block.checkpoint is not None
    assert lake.markers(block.checkpoint) == ()
