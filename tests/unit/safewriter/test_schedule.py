"""The schedule puts lead time and all instants before a deadline in order, however short the time is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safewriter.deadline import Deadline
from safewriter.schedule import Schedule


@pytest.mark.parametrize(
    ("whole_ms", "warn_ms", "lead_ms"),
    [
        (28_800_000, 30_000, 30_000),
        (28_800_000, 10**7, 7_200_000),
        (900_000, 30_000, 30_000),
        (60_000, 30_000, 15_000),
        (3, 30_000, 0),
        (0, 30_000, 0),
        (-5, 30_000, 0),
    ],
)
def test_the_lead_is_at_most_a_quarter_of_the_time(whole_ms: int, warn_ms: int, lead_ms: int) -> None:
    """A function with a short timeout keeps most of it for its work."""
    assert Schedule.of(Deadline(1_000 + whole_ms, 1_000), warn_ms).lead_ms == lead_ms


@given(st.integers(-10, 10**9), st.integers(0, 10**9))
def test_the_instants_are_in_order_whatever_the_times_are(whole_ms: int, warn_ms: int) -> None:
    """Each step ends before the next one begins, and the last one before the deadline."""
    schedule = Schedule.of(Deadline(1_000 + whole_ms, 1_000), warn_ms)
    assert list(schedule.instants) == sorted(schedule.instants)
    assert schedule.instants[-1] == 1_000 + whole_ms


def test_each_instant_is_its_share_of_the_lead_before_the_deadline() -> None:
    """The table in the module's docstring."""
    schedule = Schedule.of(Deadline(1_000_000, 440_000), 140_000)
    assert schedule.instants == (
        720_000, 860_000, 895_000, 930_000, 944_000, 965_000, 980_000, 993_000, 1_000_000
    )  # fmt: skip


def test_a_lead_that_is_longer_than_the_time_is_refused() -> None:
    """No block could ever begin, and the job would notice only at its first one."""
    with pytest.raises(ValueError, match="a lead of 61 ms is too long"):
        Schedule(Deadline(100, 0), 61)


def test_what_is_left_goes_below_zero() -> None:
    """An instant that has passed is still an instant."""
    schedule = Schedule(Deadline(100, 0, lambda: 95), 10)
    assert (schedule.left_ms(schedule.warn_at_ms), schedule.left_ms(schedule.deadline.at_ms)) == (-5, 5)
