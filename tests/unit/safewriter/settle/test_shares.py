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
