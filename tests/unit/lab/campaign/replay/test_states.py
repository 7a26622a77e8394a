"""The campaign enumerates the crash states of a recorded write: requests applied, on their way, or late."""

from __future__ import annotations

import pytest

from tests.lab.campaign.replay.states import bits, states

CHAIN = (0b0, 0b1, 0b11)
FORK = (0b0, 0b1, 0b1, 0b111)


@pytest.mark.parametrize(("mask", "numbers"), [(0, []), (0b1, [0]), (0b1010, [1, 3])])
def test_bits_have_numbers(mask: int, numbers: list[int]) -> None:
    """The lowest is 0."""
    assert list(bits(mask)) == numbers


def test_requests_one_after_the_other_leave_each_beginning() -> None:
    """The next one may be on its way."""
    assert list(states(CHAIN)) == [(0, 0), (0, 1), (1, 0), (1, 2), (3, 0), (3, 4), (7, 0)]


def test_requests_side_by_side_leave_any_of_them() -> None:
    """And any of them may be late; the one behind them was never sent then."""
    found = set(states(FORK))
    assert {applied for applied, _ in found} == {0, 0b1, 0b11, 0b101, 0b111, 0b1111}
    assert {late for applied, late in found if applied == 0b1} == {0, 0b10, 0b100, 0b110}
    assert {late for applied, late in found if applied == 0b11} == {0, 0b100}


def test_no_state_comes_twice() -> None:
    """Whatever the order in which it is reached; four files leave three ways for each."""
    found = list(states((0, 0, 0, 0)))
    assert len(found) == len(set(found)) == 3**4
