"""The sweeper finds abandoned writes by their markers, settles them, and cleans up after them.

Its cost grows with the open writes, never with the finished ones: it lists only markers.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Final

from safewriter.objects.store import StoreError
from safewriter.settle.one_write import Action, settle_one
from safewriter.settle.recovery import Cause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from safewriter.deadline import Clock
    from safewriter.record.checkpoints import Checkpoints, ListedMarker
    from safewriter.record.document import Status
    from safewriter.settle.recovery import Recovery

__all__ = ["Look", "Sweep", "Sweeper"]

_log = logging.getLogger(__name__)
_LISTED_MAX: Final = 20_000
_THREADS: Final = 8


@dataclass(frozen=True, slots=True)
class Look:
    """The result for one write. `status` is None if no document of it could be read; `since`: when it was announced."""

    write_key: str
    action: Action
    status: Status | None = None
    problem: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Sweep:
    """The results of all writes that were inspected."""

    looks: tuple[Look, ...]

    def count(self, *actions: Action) -> int:
        """Return how many writes had one of these results."""
        counts = Counter(look.action for look in self.looks)
        return sum(counts[action] for action in actions)

    @property
    def open_since(self) -> datetime | None:
        """When the oldest write that is known to be open was announced."""
        undecided = (Action.ALIVE, Action.FAILED, Action.UNREADABLE, Action.LEFT)
        return min((look.since for look in self.looks if look.action in undecided and look.since), default=None)


def _ignore(_: Look) -> None:
    """Ignore a result."""


@dataclass(frozen=True, slots=True)
class Sweeper:
    """Inspects all writes of one checkpoint bucket that have a marker, until `may_go_on` returns False.

    Each sweep begins at a random key, and takes the oldest and the newest of the listed writes in turn, so that neither
    end of a backlog waits for all the others.
    """

    checkpoints: Checkpoints
    recovery: Recovery
    clock: Clock
    may_go_on: Callable[[], bool]
    draw: Callable[[], float] = random.random
    threads: int = _THREADS
    on_look: Callable[[Look], None] = _ignore
    """Called with each result at once, from several threads, so that a later kill of the process hides none."""

    def sweep(self) -> Sweep:
        """Go through the markers once. Raises `StoreError` if they cannot be listed."""
        start = f"sw-{int(self.draw() * 0x10000):04x}"
        writes = _oldest(islice(self.checkpoints.marked(start=start), _LISTED_MAX))
        with ThreadPoolExecutor(self.threads) as pool:
            sweep = Sweep(tuple(pool.map(self._look, _from_both_ends(writes))))
        self._forget_leases()
        return sweep

    def _forget_leases(self) -> None:
        try:
            self.checkpoints.forget_leases(self.clock(), self.may_go_on)
        except StoreError as error:  # clean-up only
            _log.warning("old leases stay for the next sweep: %s", error)

    def _look(self, marker: ListedMarker) -> Look:
        look = self._inspected(marker)
        self.on_look(look)
        return look

    def _inspected(self, marker: ListedMarker) -> Look:
        if not self.may_go_on():
            return Look(marker.write_key, Action.LEFT, since=marker.since)
        inspection = settle_one(self.checkpoints, self.recovery, marker.write_key, Cause.SWEEPER, self.clock)
        status = None if inspection.document is None else inspection.document.status
        return Look(marker.write_key, inspection.action, status, inspection.problem, marker.since)


def _oldest(markers: Iterable[ListedMarker]) -> list[ListedMarker]:
    """Return the oldest marker of each write, the oldest first."""
    oldest: dict[str, ListedMarker] = {}
    for marker in sorted(markers, key=lambda marker: marker.since):
        oldest.setdefault(marker.write_key, marker)
    return list(oldest.values())


def _from_both_ends(markers: list[ListedMarker]) -> list[ListedMarker]:
    """Order oldest, newest, second oldest, second newest, and so on."""
    half = (len(markers) + 1) // 2
    mixed = zip_longest(markers[:half], reversed(markers[half:]))
    return [marker for pair in mixed for marker in pair if marker is not None]
