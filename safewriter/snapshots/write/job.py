"""The Spark job of a build: it routes each row, moves it to the task of its shard, sorts the rows and writes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from safewriter.snapshots.errors import ShardCoverageError
from safewriter.snapshots.format.manifest import Shard
from safewriter.snapshots.write.columns import KEY, RANK, ROUTING, VALUE, existing
from safewriter.snapshots.write.limits import RateLimits
from safewriter.snapshots.write.options import overridden
from safewriter.snapshots.write.placement import placed
from safewriter.snapshots.write.task_errors import errors_for_driver, errors_of_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, Row

    from safewriter.snapshots.config import Duplicates
    from safewriter.snapshots.format.encoding import KeyEncoding
    from safewriter.snapshots.write.paths import Paths
    from safewriter.snapshots.write.rows import RowFormat
    from safewriter.snapshots.write.sinks import AdapterFactory
    from safewriter.snapshots.write.task import ShardTask

__all__ = ["BuildJob", "Written"]

_SAME_ROWS: Final = (
    "spark.sql.shuffle.orderIndependentChecksum.enabled",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch",
)
"""With these settings, Spark compares the rows of a repeated map task with those of its first run, and fails the job if
they differ: in a mere count, lost and doubled rows could cancel out. Spark has them since 4.1.
"""


@dataclass(frozen=True, slots=True)
class Written:
    """The shards of a build, in order. `waited_ms`: the sum of the tasks' waits for their rate limits."""

    shards: tuple[Shard, ...]
    rows_read: int
    waited_ms: int


@dataclass(frozen=True, slots=True)
class BuildJob:
    """The parameters of all tasks; Spark sends it to the executors. `first_attempt`: the number of earlier jobs."""

    paths: Paths
    rows: RowFormat
    duplicates: Duplicates
    local_root: str
    endpoint: str | None
    last_by: str | None = None
    limits: RateLimits = field(default_factory=RateLimits)
    adapter_factory: AdapterFactory | None = None
    first_attempt: int = 0

    def run(self, df: DataFrame, rows_read: int | None = None) -> Written:
        """Write all shards in one Spark job. `rows_read`: the number of rows, if it was counted before.

        Raises `ShardCoverageError` if not each row was written, and the errors of its tasks.
        """
        from pyspark.sql import Observation, functions

        observation = Observation()
        prepared = self._prepared(df).observe(observation, functions.count(functions.lit(1)).alias("rows"))
        results = self._written(prepared)
        if rows_read is None and results:
            rows_read = int(observation.get["rows"])
            if rows_read != _rows_that_came(results):
                rows_read = None  # a repeated stage observes its rows twice
        if rows_read is None:  # observed twice, or not at all: Spark runs no task if it knows that there are no rows
            rows_read = df.count()
        waited_ms = sum(row["waited_ms"] for row in results if row["db_id"] is None)
        return Written(self._checked(results, rows_read), rows_read, waited_ms)

    def _prepared(self, df: DataFrame) -> DataFrame:
        """Return only the key, the value, the rank if any, and the columns that the routing reads."""
        routing = [
            existing(df, name).alias(f"{ROUTING}{number}") for number, name in enumerate(self.rows.routing.columns)
        ]
        value = self.rows.values.column(df, self.rows.key_col)
        rank = [] if self.last_by is None else [existing(df, self.last_by).alias(RANK)]
        return df.select(existing(df, self.rows.key_col).alias(KEY), value.alias(VALUE), *rank, *routing)

    def _written(self, rows: DataFrame) -> list[Row]:
        from pyspark.sql.pandas.types import from_arrow_schema

        from safewriter.snapshots.write.task import RESULT

        has_integers = self.rows.encoding.limit is not None
        session = rows.sparkSession
        settings = {name: "true" for name in _SAME_ROWS if session.conf.isModifiable(name)}
        with overridden(session, settings), errors_of_tasks() as job:
            has_ranks = self.last_by is not None
            moved = placed(rows, self.rows.routing, job, has_integers=has_integers, has_ranks=has_ranks)
            return moved.mapInArrow(self._write(job), from_arrow_schema(RESULT)).collect()

    def _write(self, job: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Return the function that writes the shards of one partition, on an executor."""

        def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            with errors_for_driver(job):
                yield from self._task().run(batches)

        return write

    def _task(self) -> ShardTask:
        from pyspark import TaskContext

        from safewriter.snapshots.write.task import ShardTask, TaskId
        from safewriter.snapshots.write.upload import uploader_of

        context = TaskContext.get()
        if context is None:
            raise AssertionError  # for the type checker: Spark calls this in a task
        attempt = self.first_attempt + context.attemptNumber()
        task = TaskId(context.partitionId(), attempt, context.taskAttemptId(), context.stageId())
        uploader = uploader_of(self.endpoint)
        limiter = self.limits.limiter()
        return ShardTask(
            task,
            self.paths,
            self.rows,
            self.duplicates,
            self.local_root,
            uploader,
            limiter,
            self.adapter_factory,
        )

    def _checked(self, results: list[Row], rows_read: int) -> tuple[Shard, ...]:
        """Return the shards in order; raise `ShardCoverageError` unless each row is in one."""
        shard_results = [row for row in results if row["db_id"] is not None]
        came = _rows_that_came(results)
        written = sum(row["rows"] for row in shard_results)
        kept, stored = (sum(row[name] for row in shard_results) for name in ("kept", "stored"))
        ids = [row["db_id"] for row in shard_results]
        num_dbs = self.rows.routing.num_dbs
        if len(set(ids)) != len(ids) or any(not 0 <= db_id < num_dbs for db_id in ids):
            raise ShardCoverageError(f"the tasks wrote shards {sorted(ids)}, of {num_dbs}; nothing was published")
        if not came == written == rows_read or kept != stored:
            raise ShardCoverageError(
                f"{rows_read} rows were read, {came} came to the tasks, {written} of them to shards; {kept} were"
                f" written, {stored} are in the files. Nothing was published. A source that differs from one reading to"
                " the next has to be cached"
                " first: cache_input=True"
            )
        ordered = sorted(shard_results, key=lambda row: int(row["db_id"]))
        return tuple(_shard(row, self.rows.encoding) for row in ordered)


def _rows_that_came(results: list[Row]) -> int:
    """Return how many rows the tasks got, by the last result of each task."""
    return sum(row["rows"] for row in results if row["db_id"] is None)


def _shard(row: Row, encoding: KeyEncoding) -> Shard:
    return Shard(
        db_id=row["db_id"],
        db_url=row["db_url"],
        attempt=row["attempt"],
        row_count=row["stored"],
        db_bytes=row["db_bytes"],
        min_key=_key(bytes(row["min_key"]), encoding),
        max_key=_key(bytes(row["max_key"]), encoding),
        checkpoint_id=row["checkpoint_id"],
        writer_info={name: row[name] for name in ("stage_id", "task_attempt_id", "attempt", "duration_ms")},
        sha256=row["sha256"],
    )


def _key(stored: bytes, encoding: KeyEncoding) -> int | str | None:
    """Return a key as the manifest has it; None for bytes, which JSON does not support."""
    if encoding.limit is not None:
        return int.from_bytes(stored, "big")
    try:
        return stored.decode() if encoding.value == "utf8" else None
    except UnicodeDecodeError:  # the column's type was binary
        return None
