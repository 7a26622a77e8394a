"""The stream of a batch, read through py4j on the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safewriter.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["SparkStream"]


class SparkStream:
    """One start of a stream. Its methods also work after the stream has ended."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401 - py4j has no types
        self._stream = stream
        self.run = str(stream.runId())

    @classmethod
    def of(cls, frame: DataFrame) -> SparkStream:
        """Return the stream whose batch this thread processes. Raises `UsageError` outside of `foreachBatch`."""
        spark = frame.sparkSession
        if spark._jvm is None:  # noqa: SLF001 - py4j is the only way to the stream's log; Spark Connect has none
            raise UsageError("this session is a Spark Connect client; turns of a stream need the driver's own session")
        query_id = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
        running = spark._jsparkSession.sharedState().activeStreamingQueries()  # noqa: SLF001
        uuid = spark.sparkContext._gateway.jvm.java.util.UUID  # type: ignore[union-attr]  # noqa: SLF001
        stream = running.get(uuid.fromString(query_id)) if query_id else None
        if stream is None:
            raise UsageError("this thread works on no batch of a stream; give the function to foreachBatch itself")
        return cls(stream)

    def is_active(self) -> bool:
        """Return whether the stream runs: it has not failed, and no caller has begun to stop it."""
        return bool(self._stream.isActive())

    def has_ended(self) -> bool:
        """Return whether the stream can record no more batches."""
        return not self._stream.queryExecutionThread().isAlive()

    def has_recorded(self, batch_id: int) -> bool:
        """Return whether the stream's commit log has the batch, so that Spark never delivers it again.

        The stream's progress is no evidence: older Sparks report the number of the next batch while they wait for data.
        """
        return bool(self._stream.commitLog().get(batch_id).isDefined())
