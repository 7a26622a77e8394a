"""What the guard costs: plain and guarded appends in turn, in one warm session, on one embedded S3.

The guard's own time is measured directly, as what its three calls take; the difference of two noisy totals would say
little. The S3 requests that it makes one after the other are counted from the trace.
"""

from __future__ import annotations

import os
import statistics
import time
import uuid
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from safewriter import SafeWriter
from scripts.emulator.s3 import EmbeddedS3
from scripts.emulator.spark import build_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["GuardCost", "measure"]

_LAKE = "bench-lake"
_CHECKPOINTS = "bench-checkpoints"
_WARM_UP = 3


@dataclass(frozen=True, slots=True)
class GuardCost:
    """Medians in milliseconds over `rounds` pairs; `sequential_requests` is the most that any guarded append needed."""

    rounds: int
    plain_ms: float
    guarded_ms: float
    guard_ms: float
    guard_ms_min: float
    guard_ms_max: float
    ratio: float
    sequential_requests: int
    requests: int

    def to_json(self) -> dict[str, Any]:
        """Return the figures as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Guarded:
    total_ms: float
    guard_ms: float
    intervals_ns: tuple[tuple[int, int], ...]


def measure(rounds: int = 20, rows: int = 22_248, progress: Callable[[int], None] = lambda _: None) -> GuardCost:
    """Run `rounds` pairs of appends of `rows` rows each; `progress` hears how many are done."""
    with EmbeddedS3(buckets=(_LAKE, _CHECKPOINTS), unlistable=(_CHECKPOINTS,)) as s3:
        before = dict(os.environ)
        os.environ.update(s3.environment(), SW_CHECKPOINT_BUCKET=_CHECKPOINTS)
        spark = build_session(s3.endpoint)
        try:
            return _measure(s3, spark, rounds, rows, progress)
        finally:
            spark.stop()
            os.environ.clear()
            os.environ.update(before)


def _measure(s3: EmbeddedS3, spark: SparkSession, rounds: int, rows: int, progress: Callable[[int], None]) -> GuardCost:
    frame = spark.range(0, rows, 1, 1)
    plain: list[float] = []
    guarded: list[_Guarded] = []
    for turn in range(-_WARM_UP, rounds):
        plain_ms = _plain(frame)
        cost = _guarded(s3, spark, frame)
        if turn >= 0:
            plain.append(plain_ms)
            guarded.append(cost)
            progress(turn + 1)
    alone = [cost.guard_ms for cost in guarded]
    return GuardCost(
        rounds=rounds,
        plain_ms=statistics.median(plain),
        guarded_ms=statistics.median(cost.total_ms for cost in guarded),
        guard_ms=statistics.median(alone),
        guard_ms_min=min(alone),
        guard_ms_max=max(alone),
        ratio=statistics.median(cost.total_ms / one for cost, one in zip(guarded, plain, strict=True)),
        sequential_requests=max(_depth(cost.intervals_ns) for cost in guarded),
        requests=max(len(cost.intervals_ns) for cost in guarded),
    )


def _plain(frame: DataFrame) -> float:
    started = time.perf_counter()
    frame.write.format("delta").mode("append").save(f"s3a://{_LAKE}/plain")
    return (time.perf_counter() - started) * 1000


def _guarded(s3: EmbeddedS3, spark: SparkSession, frame: DataFrame) -> _Guarded:
    # Each block is a write of its own; the steps do not matter to the cost.
    block = SafeWriter(spark, f"s3a://{_LAKE}/guarded", step=uuid.uuid4().hex)
    s3.wire.clear_trace()
    marks_ns = [time.monotonic_ns()]
    with block:
        marks_ns.append(time.monotonic_ns())
        frame.write.format("delta").mode("append").save(block.table)
        marks_ns.append(time.monotonic_ns())
        block.success()
    marks_ns.append(time.monotonic_ns())
    own = tuple(
        (exchange.started_ns, exchange.ended_ns)
        for exchange in s3.trace()
        if exchange.ended_ns <= marks_ns[1] or marks_ns[2] <= exchange.started_ns <= marks_ns[3]
    )
    guard_ns = (marks_ns[1] - marks_ns[0]) + (marks_ns[3] - marks_ns[2])
    return _Guarded((marks_ns[3] - marks_ns[0]) / 1e6, guard_ns / 1e6, own)


def _depth(intervals_ns: tuple[tuple[int, int], ...]) -> int:
    """Return how many requests followed one another: the longest chain of intervals that do not overlap."""
    depth, free_at = 0, 0
    for started, ended in sorted(intervals_ns, key=lambda interval: interval[1]):
        if started >= free_at:
            depth, free_at = depth + 1, ended
    return depth
