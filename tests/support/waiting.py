"""Waiting for something to become true, with a bound."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BUSY_S", "until"]

BUSY_S: Final = 250
"""A bound in seconds for what a busy machine does eventually. No test waits for it to pass."""


def until(holds: Callable[[], bool], *, timeout_s: float = BUSY_S) -> bool:
    """Poll until it holds; return False if it never did within the time."""
    end_s = time.monotonic() + timeout_s
    while time.monotonic() < end_s:
        if holds():
            return True
        time.sleep(0.01)
    return holds()
