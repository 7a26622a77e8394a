"""Writes share a stretch of time; tests/unit/safewriter/settle/test_sweeper_shares.py has the sweeper's."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from safewriter.settle.shares import in_shares
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(("runs_out", "undecided"), [(True, True), (True, False), (False, True), (False, False)])
def test_only_what_ran_out_of_its_share_undecided_is_looked_at_again(*, runs_out: bool, undecided: bool) -> None:
    """More time makes no other end of what has failed within its share, or has been decided all the same."""
    now_ms = [0]
    looks: list[str] = []

    def look(item: str, may_go_on: Callable[[], bool]) -> str:
        looks.append(item)
        if runs_out:
            now_ms[0] += 20
        may_go_on()
        return item

    found = in_shares(["a"], look, lambda _: undecided, lambda: True, lambda: now_ms[0], threads=1, share_ms=10)
    assert (found, looks) == (["a"], ["a"] * (1 + (runs_out and undecided)))


def test_an_error_of_one_look_ends_the_others() -> None:
    """So does an interrupt: nobody waits for shares whose results are lost."""
    began = threading.Event()
    stopped: list[bool] = []

    def look(item: str, may_go_on: Callable[[], bool]) -> None:
        if item == "failing":
            assert began.wait(BUSY_S)
            raise KeyboardInterrupt
        began.set()
        until_s = time.monotonic() + BUSY_S
        while may_go_on() and time.monotonic() < until_s:
            pass
        stopped.append(not may_go_on())

    with pytest.raises(KeyboardInterrupt):
        in_shares(["failing", "endless"], look, lambda _: False, lambda: True, lambda: 0, threads=2)
    assert stopped == [True]
