"""Inspect one write from outside: settle it, clean up after it, or look for it in its table if it has no document.

A missing document proves nothing. The attempt may have died before its claim, or a lifecycle rule or a person may have
deleted the document of an open write. So such a write gets a document only if the table holds its commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from safewriter.bounds import shortened
from safewriter.errors import SafeWriterError, UnreadableCheckpointError
from safewriter.record.announcements import announcements
from safewriter.record.checkpoints import UNCLAIMED, past_grace
from safewriter.record.document import FOUND, OPEN, Status
from safewriter.settle.recovery import Evidence
from safewriter.tables.table import UndecidableError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from safewriter.deadline import Clock
    from safewriter.record.announcements import Announcements
    from safewriter.record.checkpoints import Checkpoints, ListedMarker, StoredCheckpoint
    from safewriter.record.document import Checkpoint
    from safewriter.record.marker import Marker
    from safewriter.settle.recovery import Cause, Recovery
    from safewriter.tables.table import Trace

__all__ = ["Action", "Inspection", "look_for_unclaimed", "settle_one", "settle_or_clean"]

_WAIT: Final = timedelta(hours=2)
"""As long a marker without a document waits for a claim, beyond its attempt's own time. Each sweep looks at the table
until then, and a table can become unreadable; so it is no longer than clocks may well differ.
"""
_GIVEN_UP: Final = timedelta(days=7)
"""An attempt that could not be cleaned up in this time (its table was dropped, say) is left to `soal orphans`."""


class Action(StrEnum):
    """The outcome of the inspection of one write."""

    SETTLED = "settled"
    CLEANED = "cleaned"
    NONE = "none"
    """There was nothing left to do."""
    ALIVE = "alive"
    UNCLAIMED = "unclaimed"
    """Nothing is open, and an attempt that has not claimed has left its marker, which stays for a while."""
    UNCLEAN = "unclean"
    """The verdict stands; a later settler cleans up."""
    FAILED = "failed"
    """No verdict could be found; the write stays open."""
    UNREADABLE = "unreadable"
    """A document or marker is damaged, or of an unknown schema version; it is left alone."""
    LEFT = "left"
    """No time was left to inspect it."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """The result for one write. `before`: its document as found; `document`: its document now; None if there is none
    or it could not be read. `marker`: set for a write without a document. `problem` is shortened: it quotes what
    documents and tables say.
    """

    action: Action
    problem: str | None = None
    before: Checkpoint | None = None
    document: Checkpoint | None = None
    marker: Marker | None = None

    def __post_init__(self) -> None:
        """Shorten the problem, whoever made its text."""
        if self.problem is not None:
            object.__setattr__(self, "problem", shortened(self.problem))


def settle_one(checkpoints: Checkpoints, recovery: Recovery, write_key: str, cause: Cause, clock: Clock) -> Inspection:
    """Settle one write and clean up after it, as far as possible; remove the markers that are no longer needed.

    Never raises: an error in one write must not keep the caller from the others.
    """
    before: StoredCheckpoint | None = None
    stored: StoredCheckpoint | None = None
    try:
        before = checkpoints.read(write_key)
        if before is None:
            return look_for_unclaimed(checkpoints, recovery, write_key, cause, clock)
        stored = before
        action, problem = settle_or_clean(checkpoints, recovery, before, cause)
        if action is not Action.NONE:
            stored = checkpoints.read(write_key) or before
        gone = _take_all_away(checkpoints, recovery, stored)
        if gone is None and action in (Action.SETTLED, Action.CLEANED, Action.NONE):
            action, problem = Action.UNCLEAN, "no time was left for all of its markers; the next settler looks at them"
        elif action is Action.NONE and not gone:
            action = Action.UNCLAIMED
    except UnreadableCheckpointError as error:
        action, problem = Action.UNREADABLE, str(error)
    except Exception as error:  # noqa: BLE001 - the other writes must be inspected, too
        action = Action.FAILED
        problem = str(error) if isinstance(error, SafeWriterError) else repr(error)
    return Inspection(
        action, problem, None if before is None else before.document, None if stored is None else stored.document
    )


def settle_or_clean(
    checkpoints: Checkpoints, recovery: Recovery, stored: StoredCheckpoint, cause: Cause
) -> tuple[Action, str | None]:
    """Settle an open write whose owner is dead, or clean up after a settled one; return the action and any problem."""
    document = stored.document
    if document.status not in OPEN:
        return _clean(recovery, document)
    try:
        if not checkpoints.sighting(stored).is_dead:
            return Action.ALIVE, "its owner lives; it settles the write itself, or dies and can be recovered"
        # Only the attempt that was found dead: a retry may have claimed the next epoch since.
        settled = recovery.settle(document.write_key, cause, Evidence(document.epoch, document.owner))
    except SafeWriterError as error:
        return Action.FAILED, str(error)
    if settled is None:
        return Action.FAILED, f"{checkpoints.uri(document.write_key)} disappeared while it was settled"
    if settled.document.status in OPEN:
        return Action.ALIVE, "a retry has claimed the write since"
    return Action.SETTLED, None


def _clean(recovery: Recovery, document: Checkpoint) -> tuple[Action, str | None]:
    if document.is_finished:
        return Action.NONE, None
    try:
        recovery.clean(document.write_key)
    except SafeWriterError as error:
        return Action.UNCLEAN, str(error)
    except Exception as error:  # noqa: BLE001 - the verdict stands, and the markers come next
        return Action.UNCLEAN, repr(error)
    return Action.CLEANED, None


def _take_all_away(checkpoints: Checkpoints, recovery: Recovery, stored: StoredCheckpoint) -> bool | None:
    """Remove the markers that are no longer needed; return whether all are gone, None if time was over before."""
    all_gone = True
    for marker in checkpoints.markers_of(stored.document.write_key):
        if not recovery.settling.may_go_on():
            return None
        all_gone &= _take_away(checkpoints, marker, stored)
    return all_gone


def _take_away(checkpoints: Checkpoints, marker: ListedMarker, stored: StoredCheckpoint) -> bool:
    """Remove a marker that is no longer needed; return whether it is gone."""
    document = stored.document
    attempt = next((attempt for attempt in document.attempts if attempt.nonce == marker.nonce), None)
    if attempt is None:
        stays = not _claims_no_more(marker, stored.server_date, UNCLAIMED)
    else:
        given_up = document.status not in OPEN and past_grace(attempt, stored.server_date - _GIVEN_UP)
        stays = not attempt.cleaned and not given_up
    if not stays:
        checkpoints.unmark(marker.write_key, marker.nonce)
    return not stays


def _claims_no_more(marker: ListedMarker, now: datetime, wait: timedelta) -> bool:
    """Return whether a marker of which no document tells may go: a claim that is still to come needs its own."""
    return now - marker.since > wait


def look_for_unclaimed(
    checkpoints: Checkpoints, recovery: Recovery, write_key: str, cause: Cause, clock: Clock
) -> Inspection:
    """Look in the table for an announced write that has no document, once none of its attempts can claim or commit.

    A commit gets a document. If the table does not decide, the write stays open for an operator. If it holds nothing,
    there is no document: one that says so could arrive behind the commit of a retry. Then the markers stay for a while,
    since a claim that is still to come needs its own. Raises `UnreadableCheckpointError` if a marker cannot be read:
    then it is unknown how long its attempt may write; and `UnknownOutcomeError` if there is no time to read them all.
    """
    announced = announcements(checkpoints, write_key, clock, recovery.settling.may_go_on)
    if announced.problem is not None:
        raise announced.problem
    if announced.youngest is None:
        return Inspection(Action.NONE)
    if announced.living is not None:
        return Inspection(Action.ALIVE, marker=announced.youngest)
    return _look_in_table(checkpoints, recovery, announced, announced.youngest, cause, clock)


def _look_in_table(
    checkpoints: Checkpoints,
    recovery: Recovery,
    announced: Announcements,
    youngest: Marker,
    cause: Cause,
    clock: Clock,
) -> Inspection:
    may_go_on, write_key = recovery.settling.may_go_on, youngest.write_key
    names_the_table = youngest.document(Status.COMMITTED, FOUND, clock(), cause.value)

    def look() -> Trace | None:
        return recovery.table_of(names_the_table).trace(write_key, announced.since_ms)

    try:
        trace = look()
    except (UndecidableError, SafeWriterError) as error:
        return _undecided(checkpoints, youngest, str(error))
    landed = None if trace is None else trace.landed
    if trace is not None and landed is not None and announced.needs_success and not trace.succeeded:
        # An undo needs the table's state before the attempt, and it is unknown whether success() was called.
        problem = f"the table holds it as {landed.commit_version}, and nothing tells whether it should stay"
        return _undecided(checkpoints, youngest, problem)
    if checkpoints.read(write_key) is not None:  # an attempt has claimed it after all
        return Inspection(Action.ALIVE, marker=youngest)
    if landed is None:
        old = takewhile(lambda one: may_go_on() and _claims_no_more(one, announced.now, _WAIT), announced.markers)
        _unmark(checkpoints, old)
        return Inspection(Action.UNCLAIMED, "the table holds nothing of it", marker=youngest)
    # Nobody undoes a commit without its document. So if it is gone behind the first look at the table, what a second
    # one shows will stay.
    document = youngest.document(Status.COMMITTED, FOUND, clock(), cause.value, trace)
    if look() != trace or checkpoints.create(document) is None:
        return Inspection(Action.ALIVE, marker=youngest)
    _unmark(checkpoints, takewhile(lambda _: may_go_on(), announced.markers))
    return Inspection(Action.SETTLED, document=document)


def _unmark(checkpoints: Checkpoints, markers: Iterable[ListedMarker]) -> None:
    for marker in markers:
        checkpoints.unmark(marker.write_key, marker.nonce)


def _undecided(checkpoints: Checkpoints, marker: Marker, problem: str) -> Inspection:
    text = (
        f"{checkpoints.uri(marker.write_key)} is missing, and {marker.table} does not decide: {problem}. Look at the"
        f" table and set the verdict by hand: soal recover --write {marker.write_key} --verdict ..."
    )
    return Inspection(Action.FAILED, text, marker=marker)
