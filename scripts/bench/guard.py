"""Measure the cost of the guard: plain and guarded appends in turn, in one warm session, on one embedded S3.

The guard's own time is measured directly, as the time of its three calls; the difference of two noisy totals would say
little. The S3 requests that it makes one after the other are counted in the trace.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unittest.mock import patch

from safewriter import SafeWriter
from scripts.emulator.rules import Delay, Match, Rule
from scripts.emulator.s3 import EmbeddedS3
from scripts.emulator.spark import build_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["GuardCost", "depth", "measure"]

_LAKE = "bench-lake"
_CHECKPOINTS = "bench-checkpoints"
_WARM_UP = 3
_LATENCY_MS = 50


@dataclass(frozen=True, slots=True)
class GuardCost:
    """Medians in milliseconds over `rounds` pairs, and the requests of one guarded append beyond the plain one's.

    `guard_ms` is the time of entering the block and of `success()`; `sequential_requests` the number of the guard's
    requests that follow one another, `requests` the number of all.
    """

    rounds: int
    rows: int
    plain_ms: float
    guarded_ms: float
    ratio: float
    guard_ms: float
    guard_ms_min: float
    guard_ms_max: float
    sequential_requests: int
    requests: int


@dataclass(frozen=True, slots=True)
class _Guarded:
    """The instants of one guarded append, in nanoseconds on the monotonic clock."""

    begun: int
    entered: int
    written: int
    succeeded: int

    @property
    def total_ms(self) -> float:
        return (self.succeeded - self.begun) / 1e6

    @property
    def guard_ms(self) -> float:
        return (self.entered - self.begun + self.succeeded - self.written) / 1e6


def measure(rounds: int = 20, rows: int = 22_248, progress: Callable[[int], None] = lambda _: None) -> GuardCost:
    """Run `rounds` pairs of appends of `rows` rows each; `progress` hears how many are done."""
    with (
        EmbeddedS3(buckets=(_LAKE, _CHECKPOINTS), unlistable=(_CHECKPOINTS,)) as s3,
        patch.dict(os.environ, s3.environment(), SW_CHECKPOINT_BUCKET=_CHECKPOINTS),
    ):
        spark = build_session(s3.endpoint)
        try:
            return _measure(s3, spark, rounds, rows, progress)
        finally:
            spark.stop()


def _measure(s3: EmbeddedS3, spark: SparkSession, rounds: int, rows: int, progress: Callable[[int], None]) -> GuardCost:
    frame = spark.range(0, rows, 1, 1)
    plain: list[float] = []
    guarded: list[_Guarded] = []
    for turn in range(-_WARM_UP, rounds):
        plain_ms = _plain(frame)
        append = _guarded(spark, frame)
        if turn >= 0:
            plain.append(plain_ms)
            guarded.append(append)
            progress(turn + 1)
    alone = [append.guard_ms for append in guarded]
    sequential, requests = _requests(s3, spark, frame)
    return GuardCost(
        rounds=rounds,
        rows=rows,
        plain_ms=statistics.median(plain),
        guarded_ms=statistics.median(append.total_ms for append in guarded),
        ratio=statistics.median(append.total_ms / one for append, one in zip(guarded, plain, strict=True)),
        guard_ms=statistics.median(alone),
        guard_ms_min=min(alone),
        guard_ms_max=max(alone),
        sequential_requests=sequential,
        requests=requests,
    )


def _plain(frame: DataFrame) -> float:
    started = time.perf_counter()
    frame.write.format("delta").mode("append").save(f"s3a://{_LAKE}/plain")
    return (time.perf_counter() - started) * 1000


def _guarded(spark: SparkSession, frame: DataFrame) -> _Guarded:
    # Each block is a write of its own; the steps do not matter to the cost.
    block = SafeWriter(spark, f"s3a://{_LAKE}/guarded", step=uuid.uuid4().hex)
    begun = time.monotonic_ns()
    with block:
        entered = time.monotonic_ns()
        frame.write.format("delta").mode("append").save(block.table)
        written = time.monotonic_ns()
        block.success()
        succeeded = time.monotonic_ns()
    _wait_for_hygiene()
    return _Guarded(begun, entered, written, succeeded)


def _requests(s3: EmbeddedS3, spark: SparkSession, frame: DataFrame) -> tuple[int, int]:
    """Count the guard's requests, those that follow one another and all, with a latency under which it can be seen."""
    s3.wire.add(Rule(Match(), Delay(_LATENCY_MS), times=None))
    s3.wire.clear_trace()
    append = _guarded(spark, frame)
    s3.wire.clear_rules()
    before = [exchange for exchange in s3.trace() if exchange.ended_ns <= append.entered]
    after = [exchange for exchange in s3.trace() if append.written <= exchange.started_ns]
    critical = [*before, *(exchange for exchange in after if exchange.ended_ns <= append.succeeded)]
    return depth([(exchange.started_ns, exchange.ended_ns) for exchange in critical]), len(before) + len(after)


def _wait_for_hygiene() -> None:
    """Wait for the block's threads: their work must not fall into the next one's time."""
    for thread in threading.enumerate():
        if thread.name == "safewriter-tidy":
            thread.join()


def depth(intervals_ns: list[tuple[int, int]]) -> int:
    """Return how many requests followed one another: the longest chain of intervals that do not overlap."""
    chain, free_at = 0, 0
    for started, ended in sorted(intervals_ns, key=lambda interval: interval[1]):
        if started >= free_at:
            chain, free_at = chain + 1, ended
    return chain
