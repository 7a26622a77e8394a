"""Who comes from outside: finds by its marker what died and nobody came back for, settles it, and cleans up after it.

The cost grows with what is open, never with what is finished: only markers are listed.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Final

from safewriter.checkpoint import past_grace
from safewriter.errors import SafeWriterError, UnreadableCheckpointError
from safewriter.looking import Action, close_unclaimed, look_after
from safewriter.objects.store import StoreError
from safewriter.recovery import Cause
from safewriter.state import OPEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from safewriter.checkpoint import Checkpoints, Marked, StoredCheckpoint
    from safewriter.deadline import Clock
    from safewriter.recovery import Recovery
    from safewriter.state import Status

__all__ = ["Look", "Sweep", "Sweeper"]

_log = logging.getLogger(__name__)
_LISTED_MAX: Final = 20_000
_THREADS: Final = 8
_GIVEN_UP: Final = timedelta(days=7)
"""An attempt that cannot be cleaned up after for so long (its table was dropped) is left to `soal orphans`."""


@dataclass(frozen=True, slots=True)
class Look:
    """What came of one write. `status` is None if it has no document; `since`: when it was announced."""

    write_key: str
    action: Action
    status: Status | None = None
    problem: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Sweep:
    """What came of all writes that were looked at."""

    looks: tuple[Look, ...]

    def count(self, *actions: Action) -> int:
        """Return how many looks ended so."""
        counts = Counter(look.action for look in self.looks)
        return sum(counts[action] for action in actions)

    @property
    def open_since(self) -> datetime | None:
        """When the oldest write that is still open, as far as is known, was announced."""
        undecided = (Action.ALIVE, Action.FAILED, Action.UNREADABLE, Action.LEFT)
        return min((look.since for look in self.looks if look.action in undecided and look.since), default=None)


@dataclass(frozen=True, slots=True)
class Sweeper:
    """Looks after all writes of one checkpoint bucket that have a marker, as far as `may_go_on` lets it.

    Where it begins is drawn anew each time, and what was listed is taken from both ends of time: so neither the newest
    nor the oldest of a backlog waits for all the others.
    """

    checkpoints: Checkpoints
    recovery: Recovery
    clock: Clock
    may_go_on: Callable[[], bool]
    draw: Callable[[], float] = random.random
    threads: int = _THREADS

    def sweep(self) -> Sweep:
        """Go through the markers once. Raises `StoreError` if they cannot be listed."""
        start = f"sw-{int(self.draw() * 0x10000):04x}"
        writes = _by_write(islice(self.checkpoints.marked(start=start), _LISTED_MAX))
        with ThreadPoolExecutor(self.threads) as pool:
            sweep = Sweep(tuple(pool.map(self._look, _from_both_ends(writes))))
        self._forget_leases()
        return sweep

    def _forget_leases(self) -> None:
        try:
            self.checkpoints.forget_leases(self.clock(), self.may_go_on)
        except StoreError as error:  # hygiene only
            _log.warning("old leases stay for the next sweep: %s", error)

    def _look(self, marks: tuple[Marked, ...]) -> Look:
        first = marks[0]
        if not self.may_go_on():
            return Look(first.write_key, Action.LEFT, since=first.since)
        try:
            return self._looked(marks)
        except UnreadableCheckpointError as error:
            return Look(first.write_key, Action.UNREADABLE, None, str(error), first.since)
        except Exception as error:  # noqa: BLE001 - each write stands alone: the others must be looked at, whatever it is
            problem = str(error) if isinstance(error, (SafeWriterError, StoreError)) else repr(error)
            return Look(first.write_key, Action.FAILED, None, problem, first.since)

    def _looked(self, marks: tuple[Marked, ...]) -> Look:
        first = marks[0]
        stored = self.checkpoints.read(first.write_key)
        if stored is None:
            closed = close_unclaimed(self.checkpoints, self.recovery, marks, Cause.SWEEPER, self.clock)
            made = closed.document
            status, reason = (None, closed.problem) if made is None else (made.status, made.reason)
            return Look(first.write_key, closed.action, status, reason, first.since)
        action, problem = look_after(self.checkpoints, self.recovery, stored, Cause.SWEEPER)
        if action is not Action.NONE:
            stored = self.checkpoints.read(first.write_key) or stored
        gone = [self._take_away(mark, stored) for mark in marks]
        if action is Action.NONE and not all(gone):
            action = Action.ALIVE  # an attempt that has yet to claim
        return Look(first.write_key, action, stored.document.status, problem, first.since)

    def _take_away(self, mark: Marked, stored: StoredCheckpoint) -> bool:
        """Remove a marker that has no more to say; tell whether it is gone."""
        document = stored.document
        own = next((attempt for attempt in document.attempts if attempt.nonce == mark.nonce), None)
        if own is None:
            # A claim of it may still be on its way, made on this very version of a settled document: so that changes.
            # An open one can only be claimed after it has changed.
            over = self._can_claim_no_more(mark)
            if not over or (document.status not in OPEN and not self.checkpoints.touch(stored)):
                return False
        elif not own.cleaned and (document.status in OPEN or not past_grace(own, stored.server_date - _GIVEN_UP)):
            return False
        self.checkpoints.unmark(mark.write_key, mark.nonce)
        return True

    def _can_claim_no_more(self, mark: Marked) -> bool:
        announced = self.checkpoints.announced(mark)
        return announced is None or announced.is_over


def _by_write(marks: Iterable[Marked]) -> list[tuple[Marked, ...]]:
    """Group the markers by write, each group with its oldest first, the oldest group first."""
    found: dict[str, list[Marked]] = {}
    for mark in marks:
        found.setdefault(mark.write_key, []).append(mark)
    groups = [tuple(sorted(group, key=lambda mark: mark.since)) for group in found.values()]
    return sorted(groups, key=lambda group: group[0].since)


def _from_both_ends(groups: list[tuple[Marked, ...]]) -> list[tuple[Marked, ...]]:
    """Order oldest, newest, second oldest, second newest, and so on."""
    half = (len(groups) + 1) // 2
    mixed = zip_longest(groups[:half], reversed(groups[half:]))
    return [group for pair in mixed for group in pair if group is not None]
