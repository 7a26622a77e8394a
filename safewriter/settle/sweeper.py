"""The sweeper finds abandoned writes by their markers, settles them, and cleans up after them.

Its cost grows with the open writes, never with the finished ones: it lists only markers.
"""

from __future__ import annotations

import dataclasses
import heapq
import logging
import random
from collections import Counter
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, Final

from safewriter.objects.store import StoreError
from safewriter.settle.one_write import Action, settle_one
from safewriter.settle.recovery import Cause
from safewriter.settle.shares import SHARE_MS, THREADS, in_shares

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from safewriter.deadline import Clock
    from safewriter.record.checkpoints import Checkpoints, ListedMarker
    from safewriter.record.document import Status
    from safewriter.settle.recovery import Recovery

__all__ = ["Look", "Sweep", "Sweeper"]

_log = logging.getLogger(__name__)
_WRITES_MAX: Final = 20_000
_LISTING_MS: Final = 60_000
"""Enough for some 600,000 markers."""
_DIGITS: Final = 32
"""Those of a write key, so that a sweep may begin between any two."""


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

    Each sweep lists from a random key on, and takes the listed writes at random: no order that somebody can arrange
    keeps a write from its turn. Each write first gets a share of the time; all that is left is for those that ran out
    of it.
    """

    checkpoints: Checkpoints
    recovery: Recovery
    clock: Clock
    may_go_on: Callable[[], bool]
    draw: Callable[[], float] = random.random
    threads: int = THREADS
    share_ms: int = SHARE_MS
    on_look: Callable[[Look], None] = _ignore
    """Called with each result at once, from several threads, so that a later kill of the process hides none. Only it
    gets the problems: those of 20,000 writes would not fit into the sweeper's memory.
    """

    def sweep(self) -> Sweep:
        """Go through the markers once. Raises `StoreError` if they cannot be listed."""
        until_ms = self.clock() + _LISTING_MS
        start = f"sw-{int(self.draw() * 16**_DIGITS):0{_DIGITS}x}"
        listed = takewhile(lambda _: self.clock() < until_ms, self.checkpoints.marked(start=start))
        # A sample of all, not the first ones: false markers in front of a write, as near as one likes, do not hide it.
        writes = heapq.nsmallest(_WRITES_MAX, _oldest(listed), key=lambda _: self.draw())
        looks = in_shares(
            writes,
            self._inspected,
            lambda look: look.action in (Action.FAILED, Action.UNCLEAN),
            self.may_go_on,
            self.clock,
            told=self._told,
            threads=self.threads,
            share_ms=self.share_ms,
        )
        self._forget_leases()
        return Sweep(tuple(looks))

    def _forget_leases(self) -> None:
        try:
            self.checkpoints.forget_leases(self.clock(), self.may_go_on)
        except StoreError as error:  # clean-up only
            _log.warning("old leases stay for the next sweep: %s", error)

    def _told(self, look: Look) -> Look:
        self.on_look(look)
        return dataclasses.replace(look, problem=None)

    def _inspected(self, marker: ListedMarker, may_go_on: Callable[[], bool]) -> Look:
        if not may_go_on():
            return Look(marker.write_key, Action.LEFT, since=marker.since)
        recovery = self.recovery.within(may_go_on)
        inspection = settle_one(self.checkpoints, recovery, marker.write_key, Cause.SWEEPER, self.clock)
        status = None if inspection.document is None else inspection.document.status
        return Look(marker.write_key, inspection.action, status, inspection.problem, marker.since)


def _oldest(markers: Iterable[ListedMarker]) -> Iterator[ListedMarker]:
    """Yield the oldest marker of each write; the markers of a write come together."""
    for _, of_write in groupby(markers, key=lambda marker: marker.write_key):
        yield min(of_write, key=lambda marker: marker.since)
