"""Waiting for something to become true, with a bound."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["until"]


def until(holds: Callable[[], bool], *, timeout_s: float = 60) -> bool:
    """Poll until it holds; False if it never did within the time."""
    end_s = time.monotonic() + timeout_s
    while time.monotonic() < end_s:
        if holds():
            return True
        time.sleep(0.01)
    return holds()
