"""The latencies of a snapshot reader whose shards are on this machine already."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from safewriter.snapshots.read.reader import SnapshotReader
from tests.lab.bench.snapshot_rows import keys

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["ReadCost", "measure_reads"]

_MANY: Final = 100


@dataclass(frozen=True, slots=True)
class ReadCost:
    """Medians and 99th percentiles in microseconds. `fetch_ms`: a first read of each shard, which fetches them all.

    `miss`: an absent key. `multi`: `multi_get` of 100 keys.
    """

    rows: int
    shards: int
    open_ms: float
    fetch_ms: float
    get_us: float
    get_us_p99: float
    miss_us: float
    miss_us_p99: float
    multi_us: float
    multi_us_p99: float


def measure_reads(prefix: str, rows: int, shards: int, reads: int) -> ReadCost:
    """Read random keys of the snapshot at `prefix`."""
    chosen = np.random.default_rng(rows)
    some, others = (keys(chosen.integers(first, first + rows, reads).tolist()).tolist() for first in (0, rows))
    began = time.perf_counter()
    with SnapshotReader(prefix) as reader:
        opened = time.perf_counter()
        for key in {reader.route(key): key for key in some}.values():
            reader.get(key)
        fetched = time.perf_counter()
        found = _times(reader.get, some)
        missed = _times(reader.get, others)
        multi = _times(reader.multi_get, [some[first : first + _MANY] for first in range(0, reads, _MANY)])
    return ReadCost(
        rows=rows,
        shards=shards,
        open_ms=(opened - began) * 1000,
        fetch_ms=(fetched - opened) * 1000,
        get_us=statistics.median(found),
        get_us_p99=_p99(found),
        miss_us=statistics.median(missed),
        miss_us_p99=_p99(missed),
        multi_us=statistics.median(multi),
        multi_us_p99=_p99(multi),
    )


def _times(read: Callable[[Any], object], asked: Sequence[object]) -> list[float]:
    times = []
    for one in asked:
        began = time.perf_counter_ns()
        read(one)
        times.append((time.perf_counter_ns() - began) / 1000)
    return times


def _p99(times: list[float]) -> float:
    return sorted(times)[len(times) * 99 // 100]
