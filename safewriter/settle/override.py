"""Set a verdict by hand where settling cannot find one: audited, and only if the owner is dead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.errors import UnknownVersionError, UnreadableCheckpointError, UsageError
from safewriter.record.announcements import announcements
from safewriter.record.checkpoints import HeldCheckpoint
from safewriter.record.document import BY_HAND, OPEN, Status

if TYPE_CHECKING:
    from safewriter.deadline import Clock
    from safewriter.record.checkpoints import Checkpoints, StoredCheckpoint
    from safewriter.record.document import Checkpoint

__all__ = ["override"]


def override(checkpoints: Checkpoints, write_key: str, verdict: Status, reason: str, clock: Clock) -> Checkpoint:
    """Set the verdict of a write that settling has left open, whatever open state it is in; return its document.

    If the document is missing or damaged, a new one is made from the marker. The line of the audit log is written
    first, so that every verdict by hand has one. Raises `UsageError` if the verdict is not final, the reason is empty,
    the document is settled already or of an unknown schema version, its owner lives, or neither document nor marker can
    be read.
    """
    if verdict in OPEN:
        raise UsageError(f"{verdict} is no verdict; a write ends committed or rolled_back")
    if not reason.strip():
        raise UsageError("a verdict by hand needs a reason; it is kept in the document and in the audit log")
    damage: UnreadableCheckpointError | None = None
    stored: StoredCheckpoint | None = None
    try:
        stored = checkpoints.read(write_key)
    except UnknownVersionError as error:
        raise UsageError(f"{error}. Settle it with the soal of the version that has written it") from error
    except UnreadableCheckpointError as error:
        damage = error
    if stored is None:
        return _of_marker(checkpoints, write_key, damage, verdict, reason, clock)
    status = stored.document.status
    if status not in OPEN:
        raise UsageError(f"{checkpoints.uri(write_key)} says {status} already; a verdict is not changed by hand")
    if status is not Status.UNKNOWN and not checkpoints.sighting(stored).is_dead:
        raise UsageError(
            f"{checkpoints.uri(write_key)} says {status}, and its owner lives; wait for its end, or cancel it"
        )
    document = stored.document.moved(verdict, reason=f"{BY_HAND}: {reason}", settled_ms=clock(), settled_by=BY_HAND)
    return _written(checkpoints, stored, document)


def _of_marker(
    checkpoints: Checkpoints,
    write_key: str,
    damage: UnreadableCheckpointError | None,
    verdict: Status,
    reason: str,
    clock: Clock,
) -> Checkpoint:
    """Make the document of a write that has a marker but no readable document."""
    try:
        announced = announcements(checkpoints, write_key, clock)
    except UnreadableCheckpointError as error:
        raise UsageError(str(error)) from error
    if announced.youngest is None:
        problem = damage or announced.problem
        if problem is None:
            raise UsageError(f"there is no document {checkpoints.uri(write_key)}, and no marker of that write")
        raise UsageError(
            f"{problem}; and nothing else tells which write it is. Restore an earlier version of the object (the"
            " bucket keeps them for some days). If there is none, make sure that nothing of the write is in its table,"
            " and delete the object: a retry then starts from the beginning"
        ) from problem
    if announced.living is not None:
        raise UsageError(
            f"attempt {announced.living} of {write_key} may still claim or write it; wait until its time is over"
        )
    document = announced.youngest.document(verdict, reason, clock(), BY_HAND)
    _written(checkpoints, None if damage is None else HeldCheckpoint(document, damage.etag), document)
    for marker in announced.markers:
        checkpoints.unmark(write_key, marker.nonce)
    return document


def _written(checkpoints: Checkpoints, checkpoint: HeldCheckpoint | None, document: Checkpoint) -> Checkpoint:
    """Write the line of the audit log, then replace the document that was read, or create the first one."""
    checkpoints.audit(document, f"by_hand_{document.status.value}")
    won = checkpoints.create(document) if checkpoint is None else checkpoints.replace(checkpoint, document)
    if won is None:
        raise UsageError(f"{checkpoints.uri(document.write_key)} has changed meanwhile; inspect it again")
    return won.document
