"""Build a snapshot from a DataFrame: one Spark job writes all shards, then the driver publishes.

A function over Arrow columns hashes the keys. Spark moves each row to the task of its shard, and sorts there. Each task
writes the files of its shards, and the driver sees one small row for each of them.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from safewriter.coordination.current import turn_of_this_thread
from safewriter.snapshots.config import Duplicates
from safewriter.snapshots.errors import ConfigValidationError, ShardCoverageError
from safewriter.snapshots.keys import KeyEncoding
from safewriter.snapshots.manifest import Manifest, Shard
from safewriter.snapshots.publish import Publisher
from safewriter.snapshots.rows import KEY, SHARD, VALUE, shards_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from safewriter.snapshots.config import WriteConfig

__all__ = ["BuildResult", "BuildStats", "ValueSpec", "binary_col", "write_sharded"]

_TASKS_PER_CORE = 4
"""A Python task costs a tenth of a second of CPU, so a task writes several shards where there are many."""


@dataclass(frozen=True, slots=True)
class BuildStats:
    """How a build went. Durations in milliseconds."""

    write_ms: int
    publish_ms: int
    rows_read: int
    rows_written: int


@dataclass(frozen=True, slots=True)
class BuildResult:
    """A published snapshot."""

    run_id: str
    manifest_ref: str
    shards: tuple[Shard, ...]
    stats: BuildStats


@dataclass(frozen=True, slots=True)
class ValueSpec:
    """The column that holds the values."""

    column: str


def binary_col(column: str) -> ValueSpec:
    """Take the values from a column of bytes or text; null is an empty value."""
    return ValueSpec(column)


def write_sharded(df: DataFrame, config: WriteConfig, *, key_col: str, value_spec: ValueSpec) -> BuildResult:
    """Write a snapshot and make it current.

    In a turn of the coordinator, `_CURRENT` gets the turn's token at once, and refuses a lower one from then on.

    Raises `ConfigValidationError` for a build that cannot be, `ShardCoverageError` if not each row was written,
    `PublishConflictError` if another build was faster, `TurnLostError` if the turn has ended. `_CURRENT` is as it was
    then.
    """
    from safewriter.objects.s3 import open_store

    turn = turn_of_this_thread()
    run_id = config.output.run_id or uuid.uuid4().hex
    publisher = Publisher(open_store(config.location))
    if turn is not None:
        turn.check()
    token = None if turn is None else turn.token
    base = publisher.base(token)
    began = time.monotonic()
    created = datetime.now(UTC)
    num_dbs, rows_read = _sizes(df, config)
    found = _shards(df, config, run_id, num_dbs, key_col, value_spec)
    shards, rows = _checked(found, num_dbs, config, rows_read)
    written = time.monotonic()
    manifest = Manifest(
        run_id=run_id,
        created_at=created.isoformat(),
        num_dbs=num_dbs,
        s3_prefix=config.s3_prefix,
        key_col=key_col,
        db_path_template=config.output.db_path_template,
        shard_prefix=config.output.shard_prefix,
        key_encoding=config.key_encoding,
        shards=shards,
        custom=config.manifest.custom_manifest_fields,
    )
    if turn is not None:
        turn.check()
    ref = publisher.publish(manifest, base, token=token)
    ended = time.monotonic()
    stats = BuildStats(round((written - began) * 1000), round((ended - written) * 1000), rows_read, rows)
    return BuildResult(run_id, ref, shards, stats)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What each task has to know."""

    s3_prefix: str
    shard_prefix: str
    run_id: str
    template: str
    num_dbs: int
    encoding: KeyEncoding
    replaces: bool
    local_root: str
    endpoint: str | None

    def shard_url(self, db_id: int, attempt: str) -> str:
        """Return the directory of an attempt at a shard."""
        database = self.template.format(db_id=db_id)
        return f"{self.s3_prefix.rstrip('/')}/{self.shard_prefix}/run_id={self.run_id}/{database}/attempt={attempt}"

    def write(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the shards of one partition, on an executor."""
        from pyspark import TaskContext

        from safewriter.objects.s3 import s3_client
        from safewriter.snapshots.task import ShardTask, TaskId
        from safewriter.snapshots.upload import Uploader

        context = TaskContext.get()
        if context is None:
            raise AssertionError  # for the type checker: Spark calls this in a task
        task = TaskId(context.partitionId(), context.attemptNumber(), context.taskAttemptId(), context.stageId())
        uploader = Uploader(s3_client(endpoint=self.endpoint))
        yield from ShardTask(
            task, self.num_dbs, self.encoding, self.replaces, self.local_root, self.shard_url, uploader
        ).run(batches)


def _sizes(df: DataFrame, config: WriteConfig) -> tuple[int, int]:
    """Return the number of shards, and of rows."""
    rows = df.count()
    if config.num_dbs is not None:
        return config.num_dbs, rows
    if config.max_keys_per_shard is None:
        raise AssertionError  # for the type checker
    return max(1, -(-rows // config.max_keys_per_shard)), rows


def _shards(
    df: DataFrame, config: WriteConfig, run_id: str, num_dbs: int, key_col: str, value_spec: ValueSpec
) -> list[Any]:
    """Write all shards in one Spark job, and return what the tasks tell."""
    from pyspark.sql import functions
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.pandas.types import from_arrow_schema

    from safewriter.objects.s3 import custom_endpoint
    from safewriter.snapshots.task import RESULT

    missing = {key_col, value_spec.column} - set(df.columns)
    if missing:
        raise ConfigValidationError(f"there is no column {min(missing)!r}; there are {', '.join(df.columns)}")
    parallelism = df.sparkSession.sparkContext.defaultParallelism
    tasks = min(num_dbs, _TASKS_PER_CORE * parallelism)
    shard_of = arrow_udf(_shard_function(num_dbs), "int")  # type: ignore[call-overload] # its stub lacks this form
    values = functions.coalesce(functions.col(value_spec.column).cast("binary"), functions.lit(b""))
    rows = df.select(functions.col(key_col).alias(KEY), values.alias(VALUE))
    sharded = rows.select(shard_of(functions.col(KEY)).alias(SHARD), KEY, VALUE)
    moved = sharded.repartitionById(tasks, functions.col(SHARD) % tasks).sortWithinPartitions(SHARD, KEY)
    plan = _Plan(
        config.s3_prefix,
        config.output.shard_prefix,
        run_id,
        config.output.db_path_template,
        num_dbs,
        config.key_encoding,
        config.duplicates is Duplicates.ANY,
        str(config.output.local_root),
        custom_endpoint(),
    )
    return list(moved.mapInArrow(plan.write, from_arrow_schema(RESULT)).collect())


def _shard_function(num_dbs: int) -> Callable[[pa.Array], pa.Array]:
    import pyarrow as pa

    def shard_of(keys: pa.Array) -> pa.Array:
        return pa.array(shards_of(keys, num_dbs), pa.int32())

    shard_of.__annotations__.update({"keys": pa.Array, "return": pa.Array})  # Spark reads them, and needs the types
    return shard_of


def _checked(found: list[Any], num_dbs: int, config: WriteConfig, rows_read: int) -> tuple[tuple[Shard, ...], int]:
    """Return the shards in order, and the rows that they hold; raise `ShardCoverageError` unless each row is there."""
    results = [row for row in found if row["db_id"] is not None]
    came = sum(row["rows"] for row in found if row["db_id"] is None)
    written = sum(row["rows"] for row in results)
    stored = sum(row["stored"] for row in results)
    ids = [row["db_id"] for row in results]
    if len(set(ids)) != len(ids) or any(not 0 <= db_id < num_dbs for db_id in ids):
        raise ShardCoverageError(f"the tasks wrote shards {sorted(ids)}, of {num_dbs}; nothing was published")
    is_whole = stored == written if config.duplicates is Duplicates.ERROR else stored <= written
    if not came == written == rows_read or not is_whole:
        raise ShardCoverageError(
            f"{rows_read} rows were read, {came} came to the tasks, {written} were written, {stored} are in the files;"
            " nothing was published. A source that differs from one reading to the next has to be cached first"
        )
    return tuple(_shard(row, config.key_encoding) for row in sorted(results, key=lambda row: int(row["db_id"]))), stored


def _shard(row: Any, encoding: KeyEncoding) -> Shard:  # noqa: ANN401 - a row of Spark's
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
    """Return a key as the manifest holds it: bytes have no place in JSON."""
    if encoding.limit is not None:
        return int.from_bytes(stored, "big")
    return stored.decode() if encoding is KeyEncoding.UTF8 else None
