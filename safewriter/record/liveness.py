"""Is the owner of an S3 object alive? The answer serves progress only, never safety.

An owner renews a small object beside what it owns, its lease. S3 dates leases. An owner's deadline is on the owner's
clock: `is_over` compares it with S3's time, with a minute of grace.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

__all__ = ["GRACE_MS", "LEASE_MS", "Owner", "Sighting", "is_over", "watch"]

LEASE_MS: Final = 20_000
"""An owner whose last sign of life is older than this counts as dead."""
GRACE_MS: Final = 60_000
"""This long after its end, no request of an owner can still arrive."""
_POLL_S: Final = 1.0


class Owner(Enum):
    """The result of `watch`: the owner is dead, alive (or there was no time to find out), or no longer the owner."""

    DEAD = auto()
    ALIVE = auto()
    REPLACED = auto()


@dataclass(frozen=True, slots=True)
class Sighting:
    """The state at `now` of an object with an owner; its time ends at `end_ms` (epoch milliseconds; None: unknown)."""

    etag: str
    last_sign: datetime
    now: datetime
    end_ms: int | None

    @property
    def is_dead(self) -> bool:
        """Whether the owner's time and grace are over, or its lease has expired."""
        return is_over(self.end_ms, self.now) or (self.now - self.last_sign).total_seconds() * 1000 > LEASE_MS


def is_over(end_ms: int | None, now: datetime) -> bool:
    """Return whether `end_ms` (epoch milliseconds) and the grace after it have passed; False for None."""
    return end_ms is not None and now.timestamp() * 1000 > end_ms + GRACE_MS


def watch(
    first: Sighting,
    look: Callable[[], Sighting | None],
    *,
    may_wait: Callable[[], bool],
    sleep: Callable[[float], None],
) -> Owner:
    """Poll until the owner gives a sign of life, or its lease expires, for at most twice the length of a lease.

    `look` returns None if the object is gone.
    """
    last = first
    for _ in range(2 * LEASE_MS // int(_POLL_S * 1000)):
        if last.is_dead:
            return Owner.DEAD
        if not may_wait():
            break
        sleep(_POLL_S)
        again = look()
        if again is None or again.etag != first.etag:
            return Owner.REPLACED
        if again.last_sign != first.last_sign:
            break
        last = again
    return Owner.ALIVE
