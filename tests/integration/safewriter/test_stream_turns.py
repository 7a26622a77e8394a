"""A stream's turns on real Spark: when they end, and how a batch without one is replayed."""

from __future__ import annotations

import threading
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from safewriter import SafeWriter
from safewriter.coordination import Configuration, End, JobCoordinator, OnBlocked, Turn
from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.coordination.transitions import end, renew
from safewriter.errors import TurnLostError
from soal.testing.s3.rules import Match, Rule
from tests.support.lake import LAKE
from tests.support.network_faults import Late
from tests.support.waiting import BUSY_S, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from safewriter.coordination.record import Record
    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.lake import Lake

pytestmark = pytest.mark.spark

LOCK = "T"


class TurningStream:
    """A stream of Delta files into the table, each batch in a turn."""

    def __init__(self, spark: SparkSession, lake: Lake, **configuration: Any) -> None:
        self.spark, self.lake, self.backend = spark, lake, MemoryBackend()
        self.source = f"s3a://{LAKE}/sources/{uuid.uuid4().hex}"
        self.coordinator = self.another("Ingestion", **configuration)
        self.batches: list[int] = []
        self.failures = 0
        self.behind_the_commit: Callable[[SafeWriter], None] = lambda _: None

    def another(self, job: str, **configuration: Any) -> JobCoordinator:
        wanted = Configuration(lock=LOCK, job=job, **{"poll_s": 0.02, **configuration})
        return JobCoordinator(wanted, self.backend, decided=lambda writes: writes)

    def feed(self, rows: int) -> None:
        self.spark.range(0, rows, 1, 1).write.format("delta").mode("append").save(self.source)

    def write(self, frame: DataFrame, batch_id: int) -> None:
        self.batches.append(batch_id)
        with SafeWriter(frame.sparkSession, self.lake.table) as block:
            frame.write.format("delta").mode("append").save(block.table)
            self.behind_the_commit(block)
            block.success()
        if self.failures:
            self.failures -= 1
            raise RuntimeError("after the table's commit")

    def start(self) -> StreamingQuery:
        return (
            self.spark.readStream.format("delta")
            .option("maxFilesPerTrigger", 1)
            .load(self.source)
            .writeStream.foreachBatch(self.coordinator.for_each_batch(self.write))
            .option("checkpointLocation", f"{self.source}-checkpoint")
            .trigger(availableNow=True)
            .start()
        )

    def record(self) -> Record:
        stored = self.backend.read(LOCK)
        assert stored is not None
        return stored.record

    def ends(self) -> list[End]:
        return [turn.end for turn in self.record().history]


def test_a_turn_ends_when_the_stream_has_recorded_the_batch(spark: SparkSession, lake: Lake, s3: EmbeddedS3) -> None:
    """While the stream's own log write is held in the network, the table has the batch, and the lock is still held."""
    stream = TurningStream(spark, lake)
    stream.feed(4)
    log = Late(then="waits")
    rule = s3.wire.add(Rule(Match(frozenset({"PutObject"}), key="-checkpoint/commits/."), log))
    try:
        query = stream.start()
        assert rule.fired(timeout_s=BUSY_S)
        assert lake.rows() == 4
        assert stream.record().holder is not None
    finally:
        log.release()
        s3.wire.clear_rules()
    query.awaitTermination()
    assert until(lambda: stream.record().holder is None)
    assert stream.ends() == [End.COMPLETED]


def test_each_batch_has_a_turn_of_its_own(spark: SparkSession, lake: Lake) -> None:
    """Two files, two batches, two completed turns, also the last one's, after which the stream ends."""
    stream = TurningStream(spark, lake)
    stream.feed(4)
    stream.feed(3)
    stream.coordinator.run_stream(stream.start)
    assert (lake.rows(), stream.batches) == (7, [0, 1])
    assert stream.ends() == [End.COMPLETED, End.COMPLETED]


def test_a_batch_that_fails_after_its_commit_redoes_its_turn_and_lands_once(spark: SparkSession, lake: Lake) -> None:
    """Its turn failed, its rows are in the table; the replayed batch skips its write and completes a turn."""
    stream = TurningStream(spark, lake)
    stream.feed(4)
    stream.failures = 1
    with pytest.raises(StreamingQueryException, match="after the table's commit"):
        stream.coordinator.run_stream(stream.start)
    assert stream.ends() == [End.FAILED]
    stream.coordinator.run_stream(stream.start)
    assert (lake.rows(), stream.batches) == (4, [0, 0])
    assert stream.ends() == [End.FAILED, End.COMPLETED]


def test_a_stream_without_a_turn_starts_again_until_it_has_one(spark: SparkSession, lake: Lake) -> None:
    """Its predecessor completes a turn after the stream's first start has given up; the batch lands once."""
    stream = TurningStream(spark, lake, predecessor="Feed", on_blocked=OnBlocked.RAISE)
    stream.feed(4)
    starts: list[StreamingQuery] = []

    def start() -> StreamingQuery:
        if starts:
            stream.another("Feed").nothing_to_do()
        starts.append(stream.start())
        return starts[-1]

    stream.coordinator.run_stream(start)
    assert (len(starts), lake.rows(), stream.batches) == (2, 4, [0])
    assert stream.ends() == [End.NOTHING, End.COMPLETED]


def test_a_turn_lost_behind_the_commit_of_its_batch_starts_the_stream_again(spark: SparkSession, lake: Lake) -> None:
    """The guard cancels the batch's remaining work, and Spark's own error for that does not end the stream."""
    stream = TurningStream(spark, lake)
    stream.feed(4)

    def lose(block: SafeWriter) -> None:
        if len(stream.batches) > 1:
            return
        turn, stored = block._block.turn, stream.backend.read(LOCK)
        assert isinstance(turn, Turn)
        assert stored is not None
        stream.backend.write(end(stored.record, End.FORCED, 0), stored)
        with suppress(TurnLostError):
            turn._change(renew)  # as its renewals do
        block._spark.range(10**15).where("id < 0").collect()

    stream.behind_the_commit = lose
    stream.coordinator.run_stream(stream.start)
    assert (lake.rows(), stream.batches) == (4, [0, 0])
    assert stream.ends() == [End.FORCED, End.COMPLETED]


def test_a_stream_that_waits_for_its_turn_can_be_stopped(spark: SparkSession, lake: Lake) -> None:
    """Spark's stop() waits for foreachBatch, which gives up its wait for the lock; nothing is written."""
    stream = TurningStream(spark, lake)
    stream.feed(4)
    other = stream.another("Other")
    other.lock()
    stop = threading.Event()

    def start() -> StreamingQuery:
        query = stream.start()
        assert until(lambda: bool(stream.record().queue))
        stop.set()
        return query

    stream.coordinator.run_stream(start, stop=stop)
    other.unlock()
    assert (lake.rows(), stream.batches, stream.record().queue) == (0, [], ())
