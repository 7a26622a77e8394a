"""The search for an order of operations, on histories of one register."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lab.campaign.schedules.linearizable import NEVER, Operation, is_linearizable

if TYPE_CHECKING:
    from collections.abc import Callable


def write(value: int) -> Callable[[int], int | None]:
    return lambda _: value


def read(value: int) -> Callable[[int], int | None]:
    return lambda state: state if state == value else None


@pytest.mark.parametrize(
    ("history", "holds"),
    [
        ([Operation(write(1), 1, 2), Operation(read(1), 3, 4)], True),
        ([Operation(write(1), 1, 2), Operation(read(0), 3, 4)], False),
        ([Operation(write(1), 1, 4), Operation(read(0), 2, 3)], True),
        ([Operation(write(1), 1, 6), Operation(read(1), 2, 3), Operation(read(0), 4, 5)], False),
        ([Operation(write(1), 1, NEVER, required=False), Operation(read(1), 8, 9)], True),
        ([Operation(write(1), 1, NEVER, required=False), Operation(read(0), 8, 9)], True),
        ([Operation(write(1), 5, NEVER, required=False), Operation(read(1), 1, 2)], False),
        ([Operation(write(1), 1, 2, required=False), Operation(read(0), 3, 4), Operation(read(1), 5, 6)], False),
        (
            [Operation(write(1), 1, 4, required=False, before=1), Operation(write(2), 2, 3), Operation(read(1), 5, 6)],
            False,
        ),
        (
            [Operation(write(1), 1, 4), Operation(write(2), 1, 4), Operation(read(1), 5, 6), Operation(read(2), 7, 8)],
            False,
        ),
    ],
    ids=[
        "a read behind a write",
        "a lost write",
        "at the same time",
        "back in time",
        "without an answer, and there",
        "without an answer, and not there",
        "seen before it was called",
        "an operation that may not have happened happens within its time",
        "an operation that must come before another one",
        "two orders at once",
    ],
)
def test_a_history_is_explained_by_an_order_or_is_not(history: list[Operation[int]], holds: object) -> None:
    """Each operation takes effect at once, between its call and its answer."""
    assert is_linearizable(history, 0) is holds
