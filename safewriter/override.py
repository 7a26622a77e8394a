"""A verdict set by hand, where settling cannot find the truth out: audited, and only over a dead owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.errors import UsageError
from safewriter.state import OPEN, Status

if TYPE_CHECKING:
    from safewriter.checkpoint import Checkpoints
    from safewriter.deadline import Clock
    from safewriter.state import Checkpoint

__all__ = ["override"]

_BY = "by hand"


def override(checkpoints: Checkpoints, write_key: str, verdict: Status, reason: str, clock: Clock) -> Checkpoint:
    """Set the verdict of a write that settling has left open, whatever open state it is in; return its document.

    One that was announced and has no document gets one. The line of the audit log is written first, so that no verdict
    by hand is without one. Raises `UsageError` if the
    verdict is none, the reason is empty, the document is settled already, or its owner lives.
    """
    if verdict in OPEN:
        raise UsageError(f"{verdict} is no verdict; a write ends committed or rolled_back")
    if not reason.strip():
        raise UsageError("a verdict by hand needs a reason; it is kept in the document and in the audit log")
    stored = checkpoints.read(write_key)
    if stored is None:
        return _without_document(checkpoints, write_key, verdict, reason, clock)
    status = stored.document.status
    if status not in OPEN:
        raise UsageError(f"{checkpoints.uri(write_key)} says {status} already; a verdict is not changed by hand")
    if status is not Status.UNKNOWN and not checkpoints.sighting(stored).is_dead:
        raise UsageError(
            f"{checkpoints.uri(write_key)} says {status}, and its owner lives; wait for its end, or cancel it"
        )
    document = stored.document.moved(verdict, reason=f"{_BY}: {reason}", settled_ms=clock(), settled_by=_BY)
    checkpoints.audit(document, f"by_hand_{verdict.value}")
    won = checkpoints.replace(stored, document)
    if won is None:
        raise UsageError(f"{checkpoints.uri(write_key)} has changed meanwhile; look again")
    return won.document


def _without_document(
    checkpoints: Checkpoints, write_key: str, verdict: Status, reason: str, clock: Clock
) -> Checkpoint:
    """Make the document of a write that has a marker and nothing else."""
    marks = checkpoints.markers_of(write_key)
    announced = [(mark, found) for mark in marks if (found := checkpoints.announced(mark)) is not None]
    if not announced:
        raise UsageError(f"there is no document {checkpoints.uri(write_key)}, and no marker of that write")
    for mark, found in announced:
        if not found.is_over or checkpoints.has_sign_of_life(mark):
            raise UsageError(f"attempt {mark.nonce} of {write_key} may still claim it; wait until its time is over")
    marker = announced[0][1].marker
    make = marker.tombstone if verdict is Status.ROLLED_BACK else marker.committed
    document = make(clock(), _BY, reason)
    checkpoints.audit(document, f"by_hand_{verdict.value}")
    if checkpoints.create(document) is None:
        raise UsageError(f"{checkpoints.uri(write_key)} has changed meanwhile; look again")
    for mark, _ in announced:
        checkpoints.unmark(write_key, mark.nonce)
    return document
