"""SafeWriter in `foreachBatch`: a batch is a write of the stream's own, whatever run drives it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
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

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self.spark, self.lake = spark, lake
        self.source = f"s3a://{LAKE}/sources/{uuid.uuid4().hex}"
        self.skipped: list[int] = []

    def feed(self, rows: int) -> None:
        self.spark.range(0, rows, 1, 1).write.format("delta").mode("append").save(self.source)

    def write(self, frame: DataFrame, batch_id: int) -> None:
        with SafeWriter(frame.sparkSession, self.lake.table) as block:
            if block.already_committed:
                self.skipped.append(batch_id)
            frame.write.format("delta").mode("append").save(block.table)
            block.success()

    def run(self, function: Callable[[DataFrame, int], Any] | None = None) -> StreamingQuery:
        query = (
            self.spark.readStream.format("delta")
            .option("maxFilesPerTrigger", 1)
            .load(self.source)
            .writeStream.foreachBatch(function or self.write)
            .option("checkpointLocation", f"{self.source}-checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return query


def test_each_batch_of_a_stream_is_a_write_of_its_own(spark: SparkSession, lake: Lake) -> None:
    """Two batches, two documents named by the stream and the batch; another run goes on where the stream stands."""
    stream = Stream(spark, lake)
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

    def fail_afterwards(frame: DataFrame, batch_id: int) -> None:
        stream.write(frame, batch_id)
        raise RuntimeError

    with pytest.raises(StreamingQueryException):
        stream.run(fail_afterwards)
    assert lake.rows() == 4
    monkeypatch.setenv("SOAL_RUN_KEY", "another run")
    stream.run()
    assert lake.rows() == 4
    assert stream.skipped == [0]
    assert lake.operations() == ["WRITE"]


def test_a_batch_that_fails_in_its_block_is_taken_back_and_delivered_again(spark: SparkSession, lake: Lake) -> None:
    """The block undoes it, the stream has not noted it, and the next start brings it in once."""
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
