"""The handler gives up a call that hangs past its timeout, and passes on the value or error of any other."""

from __future__ import annotations

import threading

import pytest

from handler.process.bounded_call import OverdueError, within


def test_what_ends_in_time_is_passed_on() -> None:
    """The call's value or error is passed on."""
    assert within(10_000, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        within(10_000, lambda: 1 // 0)


@pytest.mark.parametrize("timeout_ms", [10, 0, -5])
def test_what_hangs_is_left(timeout_ms: int) -> None:
    """A used-up budget does not mean an unlimited one."""
    release = threading.Event()
    with pytest.raises(OverdueError):
        within(timeout_ms, lambda: release.wait(60))
    release.set()
