"""A task of a snapshot's build keeps its rate limits of rows and bytes, and waits no longer than needed."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safewriter.snapshots.errors import ConfigValidationError
from safewriter.snapshots.write.limits import Limiter, RateLimits
from safewriter.snapshots.write.rows import RowRun


@dataclass
class Clock:
    """A clock that only sleeping or the test moves."""

    now_s: float = 1000.0
    naps_s: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.naps_s.append(seconds)
        self.now_s += seconds

    def limiter(self, rows: float | None, size: float | None = None) -> Limiter:
        return RateLimits(rows, size).limiter(lambda: self.now_s, self.sleep)


def run(rows: int, size: int = 10) -> RowRun:
    """Return rows of `size` bytes each, key and value together."""
    return RowRun(0, [b"k" * 4] * rows, [b"v" * (size - 4)] * rows, [], None)


def written(clock: Clock, limiter: Limiter, rows: int, size: int = 10) -> list[tuple[float, int]]:
    """Write a run; return the time and the rows of each chunk."""
    return [(clock.now_s - 1000.0, len(keys)) for keys, _ in limiter.allowed(run(rows, size))]


def test_a_batch_above_the_rate_takes_its_time() -> None:
    """It neither blocks for ever nor passes at once: 50,000 rows at 1,000 a second, the first second's worth free."""
    clock = Clock()
    pieces = written(clock, clock.limiter(1000), 50_000)
    assert sum(rows for _, rows in pieces) == 50_000
    assert clock.now_s - 1000.0 == pytest.approx(49.0)


def test_one_row_above_the_rate_takes_its_time() -> None:
    """A value of 5,000 bytes at 10 bytes a second takes 499 seconds."""
    clock = Clock()
    limiter = clock.limiter(None, 10)
    written(clock, limiter, 1, 5000)
    assert (clock.now_s - 1000.0, limiter.waited_s) == (499.0, 499.0)


@pytest.mark.parametrize("rate", [0.01, 0.5, 3.7])
def test_tiny_rates_hold(rate: float) -> None:
    """This includes less than a row a second."""
    clock = Clock()
    written(clock, clock.limiter(rate), 100)
    assert clock.now_s - 1000.0 == pytest.approx((100 - rate) / rate)


@pytest.mark.parametrize(("rows", "size", "seconds"), [(100, 1e9, 99.0), (1e9, 1000, 99.0), (100, 1000, 99.0)])
def test_of_two_limits_the_tighter_one_counts(rows: float, size: float, seconds: float) -> None:
    """The waits of 10,000 rows of 10 bytes do not add up."""
    clock = Clock()
    written(clock, clock.limiter(rows, size), 10_000)
    assert clock.now_s - 1000.0 == pytest.approx(seconds)


def test_a_pause_earns_one_second_and_no_more() -> None:
    """After an idle hour, a burst is as large as at the beginning."""
    clock = Clock()
    limiter = clock.limiter(100)
    written(clock, limiter, 100)
    clock.now_s += 3600
    before_s = clock.now_s
    written(clock, limiter, 300)
    assert clock.now_s - before_s == pytest.approx(2.0)


@given(
    rate=st.floats(0.1, 1e5),
    size_rate=st.floats(1, 1e6),
    runs=st.lists(st.tuples(st.integers(1, 3000), st.integers(4, 50), st.floats(0, 5)), max_size=8),
)
def test_at_no_moment_more_is_written_than_the_rates_allow(
    rate: float, size_rate: float, runs: list[tuple[int, int, float]]
) -> None:
    """At most one second's worth more is written, and the task waits no longer than needed."""
    clock = Clock()
    limiter = clock.limiter(rate, size_rate)
    rows = size = 0
    idle_s = 0.0
    for count, each, pause_s in runs:
        for at_s, piece in written(clock, limiter, count, each):
            rows, size = rows + piece, size + piece * each
            assert rows <= rate * (1 + at_s) * 1.000001
            assert size <= size_rate * (1 + at_s) * 1.000001
        clock.now_s += pause_s
        idle_s += pause_s
    assert limiter.waited_s <= rows / rate + size / size_rate


def test_without_limits_a_run_goes_as_it_is() -> None:
    """It is one chunk, and the clock is not read."""
    clock = Clock()
    assert written(clock, clock.limiter(None), 50_000) == [(0.0, 50_000)]
    assert clock.naps_s == []


@pytest.mark.parametrize("rate", [0, -1.0, float("nan"), float("inf"), "5"])
def test_a_rate_is_more_than_nothing(rate: float) -> None:
    """A rate that would block for ever is refused."""
    with pytest.raises(ConfigValidationError, match="max_writes_per_second is"):
        RateLimits(rate)
    with pytest.raises(ConfigValidationError, match="max_write_bytes_per_second is"):
        RateLimits(None, rate)
