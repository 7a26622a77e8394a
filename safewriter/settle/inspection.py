"""One look from outside at one write: settle it, clean up after it, or close it if it has no document.

A document that is not there proves nothing. The attempt may have died before its claim, and a lifecycle rule or a
person may have deleted what was open. So the table is asked before anything is said of such a write.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from safewriter.errors import SafeWriterError, UnreadableCheckpointError
from safewriter.objects.store import StoreError
from safewriter.record.announcements import announcements
from safewriter.record.checkpoints import UNCLAIMED, past_grace
from safewriter.record.document import OPEN, CommitPoint, Status
from safewriter.settle.recovery import Evidence
from safewriter.tables.table import RetentionGapError

if TYPE_CHECKING:
    from datetime import datetime

    from safewriter.deadline import Clock
    from safewriter.record.checkpoints import Checkpoints, ListedMarker, StoredCheckpoint
    from safewriter.record.document import Checkpoint
    from safewriter.record.marker import Marker
    from safewriter.settle.recovery import Cause, Recovery

__all__ = ["Action", "Inspection", "close_unclaimed", "inspect_write", "settle_or_clean"]

_GIVEN_UP: Final = timedelta(days=7)
"""An attempt that cannot be cleaned up after for so long (its table was dropped) is left to `soal orphans`."""


class Action(StrEnum):
    """What came of a look at one write."""

    SETTLED = "settled"
    CLEANED = "cleaned"
    NONE = "none"
    """There was nothing left to do."""
    ALIVE = "alive"
    UNCLEAN = "unclean"
    """The verdict stands; what was left behind is for a later look."""
    FAILED = "failed"
    """No verdict could be had; the write stays open."""
    UNREADABLE = "unreadable"
    """A document or marker that is damaged, or of a version that is not known here: left alone."""
    LEFT = "left"
    """Time had run out before it was looked at."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """What came of one write. `before` and `document` are its document as it was found and as it is now, as far as
    there is one that could be read; `marker` tells of a write that has none.
    """

    action: Action
    problem: str | None = None
    before: Checkpoint | None = None
    document: Checkpoint | None = None
    marker: Marker | None = None


def inspect_write(
    checkpoints: Checkpoints, recovery: Recovery, write_key: str, cause: Cause, clock: Clock
) -> Inspection:
    """Bring one write as far as it can be brought, and take away the markers that have no more to say.

    Each write stands alone: whatever its objects hold and its stores answer, nothing is raised.
    """
    before: StoredCheckpoint | None = None
    stored: StoredCheckpoint | None = None
    try:
        before = checkpoints.read(write_key)
        if before is None:
            return close_unclaimed(checkpoints, recovery, write_key, cause, clock)
        stored = before
        action, problem = settle_or_clean(checkpoints, recovery, before, cause)
        if action is not Action.NONE:
            stored = checkpoints.read(write_key) or before
        gone = [_take_away(checkpoints, listed, stored) for listed in checkpoints.markers_of(write_key)]
        if action is Action.NONE and not all(gone):
            action = Action.ALIVE  # an attempt that has yet to claim
    except UnreadableCheckpointError as error:
        action, problem = Action.UNREADABLE, str(error)
    except Exception as error:  # noqa: BLE001 - the other writes must be looked at, whatever it is
        action = Action.FAILED
        problem = str(error) if isinstance(error, (SafeWriterError, StoreError)) else repr(error)
    return Inspection(
        action, problem, None if before is None else before.document, None if stored is None else stored.document
    )


def settle_or_clean(
    checkpoints: Checkpoints, recovery: Recovery, stored: StoredCheckpoint, cause: Cause
) -> tuple[Action, str | None]:
    """Settle a write if it is open and its owner dead, clean up after it if it is settled; say what was in the way."""
    document = stored.document
    if document.status not in OPEN:
        return _clean(recovery, document)
    try:
        if not checkpoints.sighting(stored).is_dead:
            return Action.ALIVE, "its owner lives; it settles the write itself, or dies and can be recovered"
        # Only what was found dead: a retry may have claimed the next epoch since.
        recovery.settle(document.write_key, cause, Evidence(document.epoch))
    except (SafeWriterError, StoreError) as error:
        return Action.FAILED, str(error)
    return Action.SETTLED, None


def _clean(recovery: Recovery, document: Checkpoint) -> tuple[Action, str | None]:
    if document.is_finished:
        return Action.NONE, None
    try:
        recovery.clean(document.write_key)
    except (StoreError, RetentionGapError) as error:
        return Action.UNCLEAN, str(error)
    return Action.CLEANED, None


def _take_away(checkpoints: Checkpoints, listed: ListedMarker, stored: StoredCheckpoint) -> bool:
    """Remove a marker that has no more to say; tell whether it is gone."""
    document = stored.document
    own = next((attempt for attempt in document.attempts if attempt.nonce == listed.nonce), None)
    if own is None:
        # A claim of it may still be on its way, made on this very version of a settled document: so that changes.
        # An open one can only be claimed after it has changed.
        over = _can_claim_no_more(checkpoints, listed, stored.server_date)
        stays = not over or (document.status not in OPEN and not checkpoints.touch(stored))
    else:
        given_up = document.status not in OPEN and past_grace(own, stored.server_date - _GIVEN_UP)
        stays = not own.cleaned and not given_up
    if not stays:
        checkpoints.unmark(listed.write_key, listed.nonce)
    return not stays


def _can_claim_no_more(checkpoints: Checkpoints, listed: ListedMarker, now: datetime) -> bool:
    try:
        announced = checkpoints.announced(listed)
    except UnreadableCheckpointError:
        if now - listed.since > UNCLAIMED:  # whatever its deadline was
            return True
        raise
    return announced is None or announced.is_over


def close_unclaimed(
    checkpoints: Checkpoints, recovery: Recovery, write_key: str, cause: Cause, clock: Clock
) -> Inspection:
    """Make the document of a write that was announced and has none, once none of its attempts can claim or commit.

    It says what the table says. Where that does not tell, the write stays open for a person. Raises
    `UnreadableCheckpointError` if a marker cannot be read: nobody knows until when its attempt may write.
    """
    announced = announcements(checkpoints, write_key, clock)
    if announced.problem is not None:
        raise announced.problem
    if not announced.readable:
        return Inspection(Action.NONE)
    marker = announced.youngest
    if announced.living is not None:
        return Inspection(Action.ALIVE, marker=marker)
    unclaimed = "the attempt ended before it had claimed the write"
    document = marker.document(Status.ROLLED_BACK, unclaimed, clock(), cause.value)
    since_ms = min(found.since_ms for found in announced.readable)
    try:
        trace = recovery.table_of(document).trace(write_key, since_ms)
    except (RetentionGapError, StoreError, SafeWriterError) as error:
        return _undecided(checkpoints, marker, str(error))
    landed = None if trace is None else trace.landed
    needs_success = any(found.marker.commit_point is CommitPoint.SUCCESS for found in announced.readable)
    if landed is not None and needs_success and trace is not None and not trace.succeeded:
        # An undo needs to know on what the attempt began, and nobody knows whether success() was called.
        problem = f"the table holds it as {landed.commit_version}, and nothing tells whether it was to stay"
        return _undecided(checkpoints, marker, problem)
    if landed is not None:
        reason = "the table holds it, and its document was gone"
        document = marker.document(Status.COMMITTED, reason, clock(), cause.value, trace)
    elif trace is not None:  # what it holds no more was fenced or taken back
        reason = "nothing of it is in the table any more, and its document was gone"
        document = marker.document(Status.ROLLED_BACK, reason, clock(), cause.value, trace)
    if checkpoints.create(document) is None:  # somebody has claimed it after all
        return Inspection(Action.ALIVE, marker=marker)
    for listed in announced.markers:
        checkpoints.unmark(write_key, listed.nonce)
    return Inspection(Action.SETTLED, document=document)


def _undecided(checkpoints: Checkpoints, marker: Marker, problem: str) -> Inspection:
    text = (
        f"{checkpoints.uri(marker.write_key)} is not there, and {marker.table} does not decide: {problem}. Look at the"
        f" table and set the verdict by hand: soal recover --write {marker.write_key} --verdict ..."
    )
    return Inspection(Action.FAILED, text, marker=marker)
