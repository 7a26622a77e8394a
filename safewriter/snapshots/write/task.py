"""A task of a build, on an executor: it writes the shards of its partition, one after the other.

The rows are sorted by shard and key. A complete shard is uploaded below a path that no other attempt of the task has,
so a killed, a speculative or a repeated task never writes to another one's objects. A failing task uploads nothing
more, nor does a killed one on the driver's machine, once the gate is shut; no manifest names their uploads.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from safewriter.entropy import unique_id
from safewriter.snapshots.errors import ShardWriteError
from safewriter.snapshots.write.duplicates import Distinct
from safewriter.snapshots.write.folders import task_folder
from safewriter.snapshots.write.gate import entered
from safewriter.snapshots.write.limits import RateLimits
from safewriter.snapshots.write.sinks import AdapterSink, SqliteSink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from safewriter.snapshots.config import Duplicates
    from safewriter.snapshots.write.limits import Limiter
    from safewriter.snapshots.write.paths import Paths
    from safewriter.snapshots.write.rows import RowFormat, RowRun
    from safewriter.snapshots.write.sinks import AdapterFactory, Sink
    from safewriter.snapshots.write.upload import Uploader

__all__ = ["RESULT", "ShardTask", "TaskId"]

RESULT: Final = pa.schema(
    [
        ("partition", pa.int32()),
        ("db_id", pa.int32()),  # null in the last result of a task, whose `rows` are all rows that it got
        ("rows", pa.int64()),
        ("kept", pa.int64()),  # without duplicates
        ("stored", pa.int64()),  # as counted in the file
        ("db_url", pa.string()),
        ("attempt", pa.int32()),
        ("task_attempt_id", pa.int64()),
        ("stage_id", pa.int32()),
        ("db_bytes", pa.int64()),
        ("sha256", pa.string()),
        ("checkpoint_id", pa.string()),
        ("min_key", pa.binary()),
        ("max_key", pa.binary()),
        ("duration_ms", pa.int64()),
        ("sums", pa.list_(pa.int64())),  # of an incremental build's digests of rows; below 2^63
        ("waited_ms", pa.int64()),  # for the rate limits, of the whole task
    ]
)
"""A result for each shard that has rows, and one for the task."""


@dataclass(frozen=True, slots=True)
class TaskId:
    """Spark's ids of a task attempt; a repeated stage counts `attempt` from 0 again."""

    partition: int
    attempt: int
    task_attempt_id: int
    stage_id: int


@dataclass(slots=True)
class _Open:
    """The shard in progress. `attempt` names the folder that only this attempt writes to."""

    db_id: int
    attempt: str
    url: str
    distinct: Distinct
    began_s: float = field(default_factory=time.monotonic)
    sink: Sink | None = None
    rows: int = 0
    kept: int = 0
    sums: NDArray[np.uint64] | None = None
    first: bytes | None = None
    last: bytes | None = None


@dataclass(slots=True)
class ShardTask:
    """Writes the shards of one partition. `local_root` is that of `task_folder`, `gate` the path of `entered`."""

    task: TaskId
    paths: Paths
    rows: RowFormat
    duplicates: Duplicates
    local_root: str
    uploader: Uploader
    limiter: Limiter = field(default_factory=RateLimits().limiter)
    adapter_factory: AdapterFactory | None = None
    gate: str | None = None
    _folder: Path = field(init=False)
    _check_gate: Callable[[], None] = field(init=False)
    _open: _Open | None = None
    _count: int = 0

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a result for each shard, and one for the task."""
        with entered(self.gate) as self._check_gate, task_folder(self.local_root) as self._folder:
            try:
                for batch in batches:
                    for run in self.rows.runs(batch):
                        if self._open is not None and self._open.db_id != run.db_id:
                            yield _result(self._close(self._open))
                        self._add(run)
                if self._open is not None:
                    yield _result(self._close(self._open))
                waited_ms = round(self.limiter.waited_s * 1000)
                yield _result({"partition": self.task.partition, "rows": self._count, "waited_ms": waited_ms})
            except BaseException as error:
                if self._open is not None and self._open.sink is not None:
                    self._open.sink.abandon(error)
                raise

    def _add(self, run: RowRun) -> None:
        shard = self._open
        if shard is None:
            attempt = self.paths.attempt(self.task.attempt, unique_id()[:16])
            url = self.paths.shard_url(run.db_id, attempt)
            shard = self._open = _Open(run.db_id, attempt, url, Distinct(self.duplicates, self.rows))
        shard.rows += len(run.keys)
        self._count += len(run.keys)
        if run.sums is not None:
            shard.sums = run.sums if shard.sums is None else shard.sums + run.sums
        distinct = shard.distinct.of(run)
        with _naming(shard):
            if shard.sink is None:
                shard.sink = self._sink(shard)
            for keys, values in self.limiter.allowed(distinct):
                self._check_gate()
                shard.sink.add(keys, values)
                shard.kept += len(keys)
        shard.first = run.keys[0] if shard.first is None else shard.first
        shard.last = run.keys[-1]

    def _sink(self, shard: _Open) -> Sink:
        folder = self._folder / str(shard.db_id)
        if self.adapter_factory is None:
            return SqliteSink(shard.url, folder, self.uploader)
        return AdapterSink(shard.url, folder, self.adapter_factory)

    def _close(self, shard: _Open) -> dict[str, Any]:
        if shard.sink is None:
            raise AssertionError  # for the type checker
        with _naming(shard):
            self._check_gate()
            stored = shard.sink.finish()
        self._open = None
        return {
            "partition": self.task.partition,
            "db_id": shard.db_id,
            "rows": shard.rows,
            "kept": shard.kept,
            "stored": stored.rows,
            "db_url": shard.url,
            "attempt": self.task.attempt,
            "task_attempt_id": self.task.task_attempt_id,
            "stage_id": self.task.stage_id,
            "db_bytes": stored.db_bytes,
            "sha256": stored.sha256,
            "checkpoint_id": unique_id(),
            "min_key": shard.first,
            "max_key": shard.last,
            "sums": None if shard.sums is None else shard.sums.tolist(),
            "duration_ms": round((time.monotonic() - shard.began_s) * 1000),
        }


@contextmanager
def _naming(shard: _Open) -> Iterator[None]:
    """Raise any error as a `ShardWriteError` that names the shard."""
    try:
        yield
    except Exception as error:
        raise ShardWriteError(
            f"shard {shard.db_id} was not written to {shard.url} after {shard.kept} rows: {error!r}",
            db_id=shard.db_id,
            attempt=shard.attempt,
            db_url=shard.url,
            rows_written=shard.kept,
        ) from error


def _result(fields: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([fields], schema=RESULT)
