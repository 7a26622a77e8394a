"""A guarded block cleans up in a thread of its own; tests that check what is left wait for it first."""

from __future__ import annotations

import threading

from tests.support.waiting import BUSY_S

__all__ = ["wait_for_hygiene"]


def wait_for_hygiene() -> None:
    """Wait until no block of this process is cleaning up."""
    for thread in threading.enumerate():
        if thread.name == "safewriter-tidy":
            thread.join(BUSY_S)
