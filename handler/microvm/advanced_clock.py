"""The clock of a deadline that may come early."""

from __future__ import annotations

from safewriter.deadline import epoch_ms

__all__ = ["AdvancedClock"]


class AdvancedClock:
    """Shows the wall clock, until someone moves it forward. Only a deadline reads it: records and leases have the true
    time.
    """

    def __init__(self) -> None:
        self._ahead_ms = 0

    def clock(self) -> int:
        """Return milliseconds since the epoch."""
        return epoch_ms() + self._ahead_ms

    def move_to(self, instant_ms: int) -> None:
        """Let it be `instant_ms` now, unless it is later already; from then on it goes on as time does."""
        self._ahead_ms = max(self._ahead_ms, instant_ms - epoch_ms())
