"""Measure the cost of the guard: plain and guarded appends in turn, in one warm session, on an S3 in its own process.

Both appends write the same rows to tables of the same kind. With a latency of S3 the difference shows how many
sequential requests the guard adds: requests in parallel with Spark's own work then cost no time.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import threading
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from safewriter import SafeWriter
from tests.lab.bench.catalog import CATALOG, in_file
from tests.lab.processes import Child
from tests.support.spark_session import LOCAL_JARS, build_session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

__all__ = ["FORMATS", "GuardCost", "GuardRow", "measure"]

FORMATS: Final = ("delta", "iceberg")
_LAKE: Final = "bench-lake"
_CHECKPOINTS: Final = "bench-checkpoints"
_WARM_UP: Final = 5
_COUNTED_MS: Final = 100
"""The latency under which requests are counted: Spark's own work between them is short in comparison."""


@dataclass(frozen=True, slots=True)
class GuardRow:
    """Medians in milliseconds over pairs of appends at one latency of S3.

    `added_ms` is the median of the pairs' differences, with quartiles. `guard_ms` is the time of the block outside of
    its statement: entering, `success()`, leaving; on Iceberg `success()` makes the commit, which the plain append makes
    in its statement. `data_to_commit_ms` is the time on Delta from the answer to the last PUT of data to the answer to
    the PUT of the commit, for both ways.
    """

    format: str
    rows: int
    latency_ms: int
    pairs: int
    plain_ms: float
    guarded_ms: float
    added_ms: float
    added_ms_q1: float
    added_ms_q3: float
    guard_ms: float
    guard_ms_min: float
    plain_data_to_commit_ms: float | None
    guarded_data_to_commit_ms: float | None


@dataclass(frozen=True, slots=True)
class GuardCost:
    """The figures, and by format the number of requests that the guard adds."""

    figures: tuple[GuardRow, ...]
    requests: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Append:
    """The instants of one append, in nanoseconds on the monotonic clock; a plain one has only the statement's."""

    begun: int
    entered: int
    written: int
    ended: int

    @property
    def total_ms(self) -> float:
        return (self.ended - self.begun) / 1e6

    @property
    def guard_ms(self) -> float:
        return (self.entered - self.begun + self.ended - self.written) / 1e6


def measure(
    pairs: int = 20,
    rows: int = 22_248,
    formats: Sequence[str] = FORMATS,
    latencies_ms: Sequence[int] = (0, 30, 100),
    progress: Callable[[int], None] = lambda _: None,
) -> GuardCost:
    """Run `pairs` pairs of appends of `rows` rows for each format and latency; `progress` gets the number done."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soal-bench-")))
        s3 = stack.enter_context(Child("tests.lab.bench.s3_server", (_LAKE, _CHECKPOINTS), folder))
        aws = s3.ready["environment"]
        stack.enter_context(patch.dict(os.environ, aws, SW_CHECKPOINT_BUCKET=_CHECKPOINTS))
        spark = build_session(
            aws["AWS_ENDPOINT_URL_S3"], settings=in_file(folder, f"s3a://{_LAKE}/w"), more_jars=LOCAL_JARS
        )
        stack.callback(spark.stop)
        bench = _Bench(spark, s3, rows)
        figures: list[GuardRow] = []
        requests: dict[str, int] = {}
        for lake_format in formats:
            bench.prepare(lake_format)
            for latency_ms in latencies_ms:
                done = pairs * len(figures)
                figures.append(bench.pairs(lake_format, latency_ms, pairs, lambda one, done=done: progress(done + one)))  # type: ignore[misc]
            requests[lake_format] = bench.added_requests(lake_format)
        return GuardCost(tuple(figures), requests)


class _Bench:
    def __init__(self, spark: SparkSession, s3: Child, rows: int) -> None:
        self.spark = spark
        self.s3 = s3
        self.rows = rows
        self.frame = spark.range(0, rows, 1, 1)

    def prepare(self, lake_format: str) -> None:
        """Make both tables, and warm up."""
        if lake_format == "iceberg":
            for way in ("plain", "guarded"):
                self.spark.sql(f"CREATE TABLE {self._table(lake_format, way)} (id BIGINT) USING iceberg")
        self._settle_down(0)
        for _ in range(_WARM_UP):
            self.plain(lake_format)
            self.guarded(lake_format)

    def pairs(self, lake_format: str, latency_ms: int, pairs: int, progress: Callable[[int], None]) -> GuardRow:
        plain, guarded, gaps = list[_Append](), list[_Append](), dict[str, list[float]]()
        for turn in range(pairs):
            for way, found in (("plain", plain), ("guarded", guarded)):
                self._settle_down(latency_ms)
                found.append(self.plain(lake_format) if way == "plain" else self.guarded(lake_format))
                if lake_format == "delta":
                    gaps.setdefault(way, []).append(_data_to_commit_ms(self._trace()))
            progress(turn + 1)
        added = [two.total_ms - one.total_ms for one, two in zip(plain, guarded, strict=True)]
        first, middle, third = statistics.quantiles(added, n=4) if pairs > 1 else added * 3
        own = [append.guard_ms for append in guarded]
        return GuardRow(
            format=lake_format,
            rows=self.rows,
            latency_ms=latency_ms,
            pairs=pairs,
            plain_ms=statistics.median(append.total_ms for append in plain),
            guarded_ms=statistics.median(append.total_ms for append in guarded),
            added_ms=middle,
            added_ms_q1=first,
            added_ms_q3=third,
            guard_ms=statistics.median(own),
            guard_ms_min=min(own),
            plain_data_to_commit_ms=statistics.median(gaps["plain"]) if gaps else None,
            guarded_data_to_commit_ms=statistics.median(gaps["guarded"]) if gaps else None,
        )

    def added_requests(self, lake_format: str) -> int:
        """Return how many more requests a guarded append makes than a plain one."""
        counted: list[int] = []
        for append in (self.plain, self.guarded):
            self._settle_down(_COUNTED_MS)
            append(lake_format)
            counted.append(len(self._trace()))
        plain, guarded = counted
        return guarded - plain

    def plain(self, lake_format: str) -> _Append:
        begun = time.monotonic_ns()
        self._append(lake_format, self._table(lake_format, "plain"))
        ended = time.monotonic_ns()
        return _Append(begun, begun, ended, ended)

    def guarded(self, lake_format: str) -> _Append:
        # Each block is a write of its own; the steps do not affect the cost.
        begun = time.monotonic_ns()
        with SafeWriter(
            self.spark, self._table(lake_format, "guarded"), format=lake_format, step=uuid.uuid4().hex
        ) as block:
            entered = time.monotonic_ns()
            self._append(lake_format, block.table)
            written = time.monotonic_ns()
            block.success()
        ended = time.monotonic_ns()
        _wait_for_hygiene()
        return _Append(begun, entered, written, ended)

    def _append(self, lake_format: str, table: str) -> None:
        if lake_format == "iceberg":
            self.frame.writeTo(table).append()
        else:
            self.frame.write.format("delta").mode("append").save(table)

    @staticmethod
    def _table(lake_format: str, way: str) -> str:
        return f"{CATALOG}.db.{way}" if lake_format == "iceberg" else f"s3a://{_LAKE}/{way}"

    def _settle_down(self, latency_ms: int) -> None:
        self.s3.ask(latency_ms=latency_ms)
        self.s3.answer()

    def _trace(self) -> list[Any]:
        self.s3.ask(trace=True)
        return list(self.s3.answer()["trace"])


def _wait_for_hygiene() -> None:
    """Wait for the block's threads: their work must not overlap with the next block."""
    for thread in threading.enumerate():
        if thread.name == "safewriter-tidy":
            thread.join()


def _data_to_commit_ms(trace: list[Any]) -> float:
    """Return the time from the answer to the last PUT of data to the answer to the commit's PUT, in milliseconds."""
    puts = [(key, stopped) for operation, _, key, _, stopped in trace if operation == "PutObject"]
    commit = next(stopped for key, stopped in puts if "/_delta_log/" in key and key.endswith(".json"))
    data = max(stopped for key, stopped in puts if key.endswith(".parquet") and stopped < commit)
    return float(commit - data) / 1e6
