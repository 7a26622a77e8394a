"""Rate limits of a task: how fast it fills its shards.

A token bucket that may go negative. Rows are written once the bucket is back at zero after these rows were taken, so at
any time at most one second's worth more is written than the rate allows, and a larger batch waits longer instead of for
ever.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from safewriter.snapshots.checks import check_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safewriter.snapshots.write.rows import RowRun

__all__ = ["Limiter", "RateLimits"]

_CHUNK_ROWS: Final = 1024


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The limits of each task attempt: rows and bytes per second; None for no limit. Picklable, for the executors."""

    max_writes_per_second: float | None = None
    max_write_bytes_per_second: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_writes_per_second", "max_write_bytes_per_second"):
            value = getattr(self, name)
            if value is not None:
                check_number(name, value, above=0)

    def limiter(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], object] = time.sleep
    ) -> Limiter:
        """Return the limiter of a task that begins now."""
        rows, size = (
            None if rate is None else _Bucket(rate, clock())
            for rate in (self.max_writes_per_second, self.max_write_bytes_per_second)
        )
        return Limiter(rows, size, clock, sleep)


@dataclass(slots=True)
class _Bucket:
    """Holds at most one second's worth of tokens, and begins full."""

    rate: float
    at_s: float
    tokens: float = field(init=False)

    def __post_init__(self) -> None:
        self.tokens = self.rate

    def take(self, amount: int, now_s: float) -> float:
        """Take tokens, below zero if needed; return the seconds until the bucket is back at zero."""
        self.tokens = min(self.rate, self.tokens + (now_s - self.at_s) * self.rate) - amount
        self.at_s = now_s
        return max(0.0, -self.tokens / self.rate)


@dataclass(slots=True)
class Limiter:
    """The limits of one task. `waited_s`: how long it has waited so far."""

    _rows: _Bucket | None
    _bytes: _Bucket | None
    _clock: Callable[[], float]
    _sleep: Callable[[float], object]
    waited_s: float = 0.0

    def allowed(self, run: RowRun) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Yield keys and values of the run in chunks; wait before each one until it may be written."""
        if self._rows is None and self._bytes is None:
            yield run.keys, run.values
            return
        rows = _CHUNK_ROWS if self._rows is None else max(1, min(_CHUNK_ROWS, int(self._rows.rate)))
        for first in range(0, len(run.keys), rows):
            keys, values = run.keys[first : first + rows], run.values[first : first + rows]
            self._wait(len(keys), sum(map(len, keys)) + sum(map(len, values)))
            yield keys, values

    def _wait(self, rows: int, size: int) -> None:
        now_s = self._clock()  # both buckets refill during one wait, so the longer wait is enough
        wait_s = max(
            0.0 if bucket is None else bucket.take(amount, now_s)
            for bucket, amount in ((self._rows, rows), (self._bytes, size))
        )
        if wait_s > 0:
            self._sleep(wait_s)
            self.waited_s += wait_s
