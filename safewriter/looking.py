"""One look from outside at one write: settle it, clean up after it, or close it if it has no document.

A document that is not there proves nothing. The attempt may have died before its claim, and a lifecycle rule or a
person may have deleted what was open. So the table is asked before anything is said of such a write.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from safewriter.errors import SafeWriterError
from safewriter.objects.store import StoreError
from safewriter.recovery import Evidence
from safewriter.state import OPEN, CommitPoint
from safewriter.tables.table import RetentionGapError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from safewriter.checkpoint import Checkpoints, Marked, StoredCheckpoint
    from safewriter.deadline import Clock
    from safewriter.marker import Marker
    from safewriter.recovery import Cause, Recovery
    from safewriter.state import Checkpoint

__all__ = ["Action", "Closed", "close_unclaimed", "look_after"]


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
    """A document of a version that is not known here: left alone."""
    LEFT = "left"
    """Time had run out before it was looked at."""


@dataclass(frozen=True, slots=True)
class Closed:
    """What came of a write that has a marker and no document. `document` is the one that was made."""

    action: Action
    marker: Marker | None = None
    document: Checkpoint | None = None
    problem: str | None = None


def look_after(
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


def close_unclaimed(
    checkpoints: Checkpoints, recovery: Recovery, marks: Sequence[Marked], cause: Cause, clock: Clock
) -> Closed:
    """Make the document of a write that was announced and has none, once none of its attempts can claim or commit.

    `marks` are all markers of the write, the oldest first.

    It says what the table says. Where that does not tell, the write stays open for a person.
    """
    announced = [(mark, found) for mark in marks if (found := checkpoints.announced(mark)) is not None]
    if not announced:
        return Closed(Action.NONE)
    marker = announced[0][1].marker
    if any(not found.is_over or checkpoints.has_sign_of_life(mark) for mark, found in announced):
        return Closed(Action.ALIVE, marker)
    document = marker.tombstone(clock(), cause.value)
    since_ms = min(found.since_ms for _, found in announced)
    try:
        trace = recovery.tables.open(document).trace(marker.write_key, since_ms)
    except (RetentionGapError, StoreError, SafeWriterError) as error:
        return Closed(Action.FAILED, marker, problem=_undecided(checkpoints, marker, str(error)))
    landed = None if trace is None else trace.landed
    needs_success = any(found.marker.commit_point is CommitPoint.SUCCESS for _, found in announced)
    if landed is not None and needs_success:
        # An undo needs to know on what the attempt began, and nobody knows whether success() was called.
        problem = f"the table holds it as {landed.commit_version}, and nothing tells whether it was to stay"
        return Closed(Action.FAILED, marker, problem=_undecided(checkpoints, marker, problem))
    if trace is not None:
        document = marker.found(trace, clock(), cause.value)
    held = checkpoints.create(document)
    if held is None:  # somebody has claimed it after all
        return Closed(Action.ALIVE, marker)
    for mark, _ in announced:
        checkpoints.unmark(mark.write_key, mark.nonce)
    return Closed(Action.SETTLED, marker, held.document)


def _undecided(checkpoints: Checkpoints, marker: Marker, problem: str) -> str:
    return (
        f"{checkpoints.uri(marker.write_key)} is not there, and {marker.table} does not decide: {problem}. Look at the"
        f" table and set the verdict by hand: soal recover --write {marker.write_key} --verdict ..."
    )
