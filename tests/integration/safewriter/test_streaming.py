"""SafeWriter in `foreachBatch`: a batch is a write of the stream's own, whichever run drives it."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import inheritable_thread_target
from pyspark.errors import StreamingQueryException

from safewriter import SafeWriter
from tests.support.lake import LAKE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tests.support.lake import Lake

pytestmark = pytest.mark.spark


class Stream:
    """A stream from one Delta table into another, with its checkpoint on S3."""

    def __init__(self, spark: SparkSession, lake: Lake, mode: str = "append", scheme: str = "s3a") -> None:
        self.spark, self.lake, self.mode = spark, lake, mode
        self.source = f"s3a://{LAKE}/sources/{uuid.uuid4().hex}"
        self.checkpoint = f"{self.source}-checkpoint".replace("s3a", scheme, 1)
        self.skipped: list[int] = []

    def feed(self, rows: int) -> None:
        self.spark.range(0, rows, 1, 1).write.format("delta").mode("append").save(self.source)

    def write(self, frame: DataFrame, batch_id: int) -> None:
        with SafeWriter(frame.sparkSession, self.lake.table) as block:
            if block.already_committed:
                self.skipped.append(batch_id)
            frame.write.format("delta").mode(self.mode).save(block.table)
            block.success()

    def fail_afterwards(self, frame: DataFrame, batch_id: int) -> None:
        """Write, and end the stream before it has recorded the batch."""
        self.write(frame, batch_id)
        raise RuntimeError

    def run(
        self,
        function: Callable[[DataFrame, int], Any] | None = None,
        *,
        of: Callable[[DataFrame], DataFrame] | None = None,
    ) -> StreamingQuery:
        source = self.spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(self.source)
        query = (
            (source if of is None else of(source))
            .writeStream.foreachBatch(function or self.write)
            .outputMode("append" if of is None else "complete")
            .option("checkpointLocation", self.checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return query


@pytest.mark.parametrize("scheme", ["s3a", "s3"])
def test_each_batch_of_a_stream_is_a_write_of_its_own(spark: SparkSession, lake: Lake, scheme: str) -> None:
    """Two batches, two documents named by the stream and the batch; another run continues at the stream's position."""
    stream = Stream(spark, lake, scheme=scheme)
    stream.feed(4)
    stream.feed(3)
    query = stream.run()
    stream.feed(2)
    stream.run()
    assert lake.rows() == 9
    documents = {document.step: document for document in lake.documents()}
    assert sorted(map(str, documents)) == ["batch 0", "batch 1", "batch 2"]
    assert {document.run_key for document in documents.values()} == {f"stream {query.id}"}
    assert {document.status for document in documents.values()} == {"committed"}
    assert stream.skipped == []


def test_a_batch_that_landed_before_the_stream_noted_it_is_not_written_again(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream fails between the table's commit and its own, and delivers the batch again, in another run."""
    stream = Stream(spark, lake)
    stream.feed(4)
    with pytest.raises(StreamingQueryException):
        stream.run(stream.fail_afterwards)
    assert lake.rows() == 4
    monkeypatch.setenv("SOAL_RUN_KEY", "another run")
    stream.run()
    assert lake.rows() == 4
    assert stream.skipped == [0]
    assert lake.operations() == ["WRITE"]


def test_a_stream_with_state_goes_on_behind_a_batch_that_landed_before(spark: SparkSession, lake: Lake) -> None:
    """A skipped block does not compute its batch, nor its state, so SafeWriter makes Spark compute it."""
    stream = Stream(spark, lake, "overwrite")
    stream.feed(4)
    with pytest.raises(StreamingQueryException):
        stream.run(stream.fail_afterwards, of=lambda frame: frame.groupBy("id").count())
    stream.feed(3)
    stream.run(of=lambda frame: frame.groupBy("id").count())
    assert stream.skipped == [0]
    found = spark.read.format("delta").load(lake.table).collect()
    assert sorted((row["id"], row["count"]) for row in found) == [(0, 2), (1, 2), (2, 2), (3, 1)]
    assert lake.operations() == ["WRITE", "WRITE"]


def test_a_batch_that_fails_in_its_block_is_taken_back_and_delivered_again(spark: SparkSession, lake: Lake) -> None:
    """The block undoes it, the stream has not recorded it, and the next start writes it once."""
    stream = Stream(spark, lake)
    stream.feed(4)

    def fail_inside(frame: DataFrame, batch_id: int) -> None:
        with SafeWriter(frame.sparkSession, lake.table) as block:
            frame.write.format("delta").mode("append").save(block.table)
            raise RuntimeError

    with pytest.raises(StreamingQueryException):
        stream.run(fail_inside)
    assert lake.rows() == 0
    stream.run()
    assert lake.rows() == 4
    (document,) = lake.documents()
    assert (document.status, document.epoch) == ("committed", 2)


def test_a_thread_that_does_not_know_its_batch_writes_nothing(spark: SparkSession, lake: Lake) -> None:
    """Plain threads inherit nothing from Spark's; named by the run, the next batch's write would be skipped."""
    stream = Stream(spark, lake)
    stream.feed(4)

    def pooled(frame: DataFrame, batch_id: int) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(stream.write, frame, batch_id).result()

    with pytest.raises(StreamingQueryException, match="inheritable_thread_target"):
        stream.run(pooled)
    assert (lake.rows(), lake.documents()) == (0, [])


def test_a_thread_that_was_given_its_batch_writes_it_once_also_when_the_stream_comes_back(
    spark: SparkSession, lake: Lake
) -> None:
    """The thread is made as PySpark recommends: seven rows in two batches, whatever is delivered again."""
    stream = Stream(spark, lake)
    stream.feed(4)
    stream.feed(3)

    def pooled(frame: DataFrame, batch_id: int) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(inheritable_thread_target(frame.sparkSession)(stream.write), frame, batch_id).result()
        if not stream.skipped:
            raise RuntimeError  # after the commit of the batch, before the stream's own

    with pytest.raises(StreamingQueryException):
        stream.run(pooled)
    stream.run(pooled)
    assert (lake.rows(), stream.skipped) == (7, [0])
    assert sorted(str(document.step) for document in lake.documents()) == ["batch 0", "batch 1"]


def test_two_blocks_on_one_table_in_one_batch_need_a_step_each(spark: SparkSession, lake: Lake) -> None:
    """The second is no repeated batch: the stream has not been restarted since the first."""
    stream = Stream(spark, lake)
    stream.feed(4)

    def twice(frame: DataFrame, batch_id: int, steps: tuple[str | None, ...] = (None, None)) -> None:
        for step in steps:
            with SafeWriter(frame.sparkSession, lake.table, step=step) as block:
                frame.write.format("delta").mode("append").save(block.table)
                block.success()

    with pytest.raises(StreamingQueryException, match="step of its own"):
        stream.run(twice)
    assert lake.rows() == 4
    with pytest.raises(StreamingQueryException, match="step of its own"):
        stream.run(twice)  # the first one is recognised and skipped now, the second still differs
    stream.run(lambda frame, batch_id: twice(frame, batch_id, ("one", "two")))
    assert lake.rows() == 12


def test_a_block_of_the_main_thread_beside_a_stream_is_one_of_the_run(spark: SparkSession, lake: Lake) -> None:
    """Spark calls foreachBatch on threads of its own, so the main thread's block belongs to no batch."""
    stream = Stream(spark, lake)
    stream.feed(1)
    reader = spark.readStream.format("delta").load(stream.source).writeStream.foreachBatch(lambda *_: None)
    query = reader.option("checkpointLocation", stream.checkpoint).start()
    try:
        with SafeWriter(spark, lake.table) as block:
            spark.range(0, 3, 1, 1).write.format("delta").mode("append").save(block.table)
            block.success()
    finally:
        query.stop()
    assert not lake.document().run_key.startswith("stream")


def test_a_worker_that_outlives_its_batch_writes_nothing_of_the_next(spark: SparkSession, lake: Lake) -> None:
    """It keeps the name of the batch in which it was started, under which the next batch would be skipped."""
    stream = Stream(spark, lake)
    stream.feed(3)
    with ThreadPoolExecutor(1) as pool:
        workers: list[Callable[[DataFrame, int], None]] = []

        def hand_over(frame: DataFrame, batch_id: int) -> None:
            if not workers:
                workers.append(inheritable_thread_target(frame.sparkSession)(stream.write))
            pool.submit(workers[0], frame, batch_id).result()

        stream.run(hand_over)
        stream.feed(4)
        with pytest.raises(StreamingQueryException, match="started in batch 0 of a stream that is at batch 1"):
            stream.run(hand_over)
    assert (lake.rows(), stream.skipped) == (3, [])


def test_a_block_that_was_made_before_its_batch_writes_nothing(spark: SparkSession, lake: Lake) -> None:
    """It has the name of the run, under which the next run would skip another batch."""
    stream = Stream(spark, lake)
    stream.feed(3)
    made = SafeWriter(spark, lake.table)

    def write(frame: DataFrame, _: int) -> None:
        with made as block:
            frame.write.format("delta").mode("append").save(block.table)

    with pytest.raises(StreamingQueryException, match="made outside the batch"):
        stream.run(write)
    assert (lake.rows(), lake.documents()) == (0, [])
