"""The Spark job of a build: it routes each row, moves it to the task of its shard, sorts the rows and writes them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from safewriter.snapshots.errors import ShardCoverageError
from safewriter.snapshots.format.manifest import Shard
from safewriter.snapshots.write.columns import KEY, RANK, ROUTING, SHARD, VALUE, existing
from safewriter.snapshots.write.limits import RateLimits
from safewriter.snapshots.write.options import overridden
from safewriter.snapshots.write.placement import placed, sharded
from safewriter.snapshots.write.row_digest import ROWS_DIGEST, DigestRule, sums_by_shard, with_digests
from safewriter.snapshots.write.task_errors import errors_for_driver, errors_of_tasks
from safewriter.snapshots.write.unchanged import NOTHING, Comparison

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

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
    """The shards of a build, in order. `waited_ms`: the sum of the tasks' waits for their rate limits. `taken_over`:
    the numbers of the shards that the current snapshot had.
    """

    shards: tuple[Shard, ...]
    rows_read: int
    waited_ms: int
    taken_over: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class BuildJob:
    """The parameters of all tasks; Spark sends it to the executors. `gate`: its path, if the tasks run on the driver's
    machine. `first_attempt`: the number of earlier jobs. `is_incremental`: the rows have digests. `comparison`: which
    shards need not be written.
    """

    paths: Paths
    rows: RowFormat
    duplicates: Duplicates
    local_root: str
    endpoint: str | None
    last_by: str | None = None
    limits: RateLimits = field(default_factory=RateLimits)
    adapter_factory: AdapterFactory | None = None
    gate: str | None = None
    first_attempt: int = 0
    is_incremental: bool = False
    comparison: Comparison = NOTHING

    def compared(self, df: DataFrame, earlier: Mapping[int, Shard]) -> BuildJob:
        """Read the rows without moving them, and return the job that writes the shards which differ from `earlier`.

        Raises the errors of the routing.
        """
        if not earlier:
            return self
        prepared = self._prepared(df)
        with errors_of_tasks() as job:
            found = sums_by_shard(self._sharded(prepared, job))
        rule = self._rule(prepared)
        digests = {db_id: rule.digest(*counted) for db_id, counted in found.items()}
        same = {
            db_id: earlier[db_id]
            for db_id, digest in digests.items()
            if db_id in earlier and earlier[db_id].writer_info[ROWS_DIGEST] == digest
        }
        rows = sum(count for count, _ in found.values())
        return replace(self, comparison=Comparison(rows, digests, same, sum(found[db_id][0] for db_id in same)))

    def run(self, df: DataFrame, rows_read: int | None = None) -> Written:
        """Write all shards in one Spark job. `rows_read`: the number of rows, if it was counted before.

        Raises `ShardCoverageError` if not each row was written, and the errors of its tasks.
        """
        from pyspark.sql import Observation, functions

        observation = Observation()
        prepared = self._prepared(df)
        rule = self._rule(prepared) if self.is_incremental else None
        rows_read = self.comparison.rows if rows_read is None else rows_read
        counted = functions.count(functions.lit(1)).alias("rows")
        results = self._written(prepared, lambda rows: rows.observe(observation, counted))
        if rows_read is None and results:
            rows_read = int(observation.get["rows"])
            if rows_read != _rows_that_came(results):
                rows_read = None  # a repeated stage observes its rows twice
        if rows_read is None:  # observed twice, or not at all: Spark runs no task if it knows that there are no rows
            rows_read = df.count()
        waited_ms = sum(row["waited_ms"] for row in results if row["db_id"] is None)
        shards = self._checked(results, rows_read, rule)
        return Written(shards, rows_read, waited_ms, frozenset(self.comparison.same))

    def _prepared(self, df: DataFrame) -> DataFrame:
        """Return only the key, the value, the rank if any, and the columns that the routing reads."""
        routing = [
            existing(df, name).alias(f"{ROUTING}{number}") for number, name in enumerate(self.rows.routing.columns)
        ]
        value = self.rows.values.column(df, self.rows.key_col)
        rank = [] if self.last_by is None else [existing(df, self.last_by).alias(RANK)]
        prepared = df.select(existing(df, self.rows.key_col).alias(KEY), value.alias(VALUE), *rank, *routing)
        return with_digests(prepared) if self.is_incremental else prepared

    def _rule(self, prepared: DataFrame) -> DigestRule:
        return DigestRule.of(prepared, self.rows.routing, self.rows.encoding, self.duplicates, self.rows.key_col)

    def _sharded(self, prepared: DataFrame, job: str) -> DataFrame:
        return sharded(prepared, self.rows.routing, job, has_integers=self.rows.encoding.limit is not None)

    def _written(self, rows: DataFrame, observed: Callable[[DataFrame], DataFrame]) -> list[Row]:
        from pyspark.sql import functions
        from pyspark.sql.pandas.types import from_arrow_schema

        from safewriter.snapshots.write.task import RESULT

        num_dbs, same = self.rows.routing.num_dbs, self.comparison.same
        shards = num_dbs if self.comparison.digests is None else len(self.comparison.digests) - len(same)
        if self.comparison.digests is not None and not shards:
            return []
        session = rows.sparkSession
        settings = {name: "true" for name in _SAME_ROWS if session.conf.isModifiable(name)}
        with overridden(session, settings), errors_of_tasks() as job:
            # Spark pushes no filter below an observation. Otherwise it would put the steps of the digest, each of which
            # uses the one before several times, into one expression, which fills any memory.
            needed = observed(self._sharded(rows, job))
            if same:
                needed = needed.where(~functions.col(SHARD).isin([*same]))
            has_integers, has_ranks = self.rows.encoding.limit is not None, self.last_by is not None
            moved = placed(needed, num_dbs, shards=shards, has_integers=has_integers, has_ranks=has_ranks)
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
            self.gate,
        )

    def _checked(self, results: list[Row], rows_read: int, rule: DigestRule | None = None) -> tuple[Shard, ...]:
        """Return the shards in order; raise `ShardCoverageError` unless each row is in one."""
        same, rows_same = self.comparison.same, self.comparison.rows_same
        shard_results = [row for row in results if row["db_id"] is not None]
        came = _rows_that_came(results)
        written = sum(row["rows"] for row in shard_results)
        kept, stored = (sum(row[name] for row in shard_results) for name in ("kept", "stored"))
        ids = [row["db_id"] for row in shard_results]
        num_dbs = self.rows.routing.num_dbs
        if len({*ids, *same}) != len(ids) + len(same) or any(not 0 <= db_id < num_dbs for db_id in ids):
            raise ShardCoverageError(f"the tasks wrote shards {sorted(ids)}, of {num_dbs}; nothing was published")
        digests = {} if rule is None else {row["db_id"]: rule.digest(row["rows"], row["sums"]) for row in shard_results}
        if not came == written == rows_read - rows_same or kept != stored or not self._are_as_read(digests):
            raise ShardCoverageError(
                f"{rows_read} rows were read, {rows_same} of them are in shards of the current snapshot, {came} came to"
                f" the tasks, {written} of them to shards; {kept} were written, {stored} are in the files. Nothing was"
                " published. A source that differs from one reading to the next has to be cached first:"
                " cache_input=True"
            )
        shards = [_shard(row, self.rows.encoding, digests.get(row["db_id"])) for row in shard_results]
        return tuple(sorted([*shards, *same.values()], key=lambda shard: shard.db_id))

    def _are_as_read(self, written: Mapping[int, str]) -> bool:
        """Return whether the written shards have the rows of the first reading, if there was one."""
        first, same = self.comparison.digests, self.comparison.same
        return first is None or written == {db_id: digest for db_id, digest in first.items() if db_id not in same}


def _rows_that_came(results: list[Row]) -> int:
    """Return how many rows the tasks got, by the last result of each task."""
    return sum(row["rows"] for row in results if row["db_id"] is None)


def _shard(row: Row, encoding: KeyEncoding, digest: str | None) -> Shard:
    info = {name: row[name] for name in ("stage_id", "task_attempt_id", "attempt", "duration_ms")}
    return Shard(
        db_id=row["db_id"],
        db_url=row["db_url"],
        attempt=row["attempt"],
        row_count=row["stored"],
        db_bytes=row["db_bytes"],
        min_key=_key(bytes(row["min_key"]), encoding),
        max_key=_key(bytes(row["max_key"]), encoding),
        checkpoint_id=row["checkpoint_id"],
        writer_info=info if digest is None else {**info, ROWS_DIGEST: digest},
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
