"""What only an operator decides: to end a holder's turn by force, to strike a write that nobody can settle."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from safewriter.coordination.backend import RecordChanged
from safewriter.coordination.record import End
from safewriter.coordination.transitions import end
from safewriter.deadline import epoch_ms
from safewriter.objects import Location
from safewriter.record.checkpoints import Checkpoints
from soal.console.problem import EXIT_FAILED, EXIT_TRY_AGAIN, Problem

if TYPE_CHECKING:
    from safewriter.coordination.backend import Stored
    from safewriter.coordination.record import OpenWrite
    from soal.locks.service import LockService

__all__ = ["force", "forget"]

_TRIES: Final = 50


def force(service: LockService, seen: Stored) -> Stored:
    """End the grant that was seen, whatever else changes in the record meanwhile; return the record without it.

    All its writes become unsettled: the next holder settles each before its own turn. Raises `Problem` if the grant has
    ended meanwhile.
    """
    if seen.record.holder is None:
        raise ValueError(f"{seen.record.lock} is free")
    stored = seen
    for _ in range(_TRIES):
        try:
            return service.backend.write(end(stored.record, End.FORCED, epoch_ms()), stored)
        except RecordChanged:
            stored = service.read(seen.record.lock)
            if not stored.record.is_held_by(seen.record.holder.nonce):
                raise _changed(seen.record.lock, f"the turn of {seen.record.holder.job} has ended by itself") from None
    raise _changed(seen.record.lock, "its record changes faster than it can be written")


def forget(service: LockService, seen: Stored, write_key: str) -> Stored:
    """Strike an unsettled write that has no document any more; return the record without it.

    Raises `Problem` if the record does not name it, or if its document is there: then it can be settled.
    """
    found = [write for write in seen.record.unsettled if write.write_key == write_key]
    if not found:
        raise Problem(
            f"{write_key} is no unsettled write of {seen.record.lock}",
            todo=f"look for it with: soal locks show {seen.record.lock}",
            exit_code=EXIT_FAILED,
        )
    for write in found:
        _check_gone(write, Checkpoints(service.store(Location.parse(write.checkpoints))))
    stored = seen
    for _ in range(_TRIES):
        left = tuple(write for write in stored.record.unsettled if write not in found)
        try:
            return service.backend.write(replace(stored.record, unsettled=left), stored)
        except RecordChanged:
            stored = service.read(seen.record.lock)
    raise _changed(seen.record.lock, "its record changes faster than it can be written")


def _check_gone(write: OpenWrite, checkpoints: Checkpoints) -> None:
    stored = checkpoints.read(write.write_key)
    if stored is not None and stored.document.epoch >= write.epoch:
        raise Problem(
            f"{checkpoints.uri(write.write_key)} is there, so the write can be settled; nothing was changed",
            todo=f"the next holder settles it; or settle it now with: soal recover --write {write.write_key}",
            exit_code=EXIT_FAILED,
        )


def _changed(lock: str, what: str) -> Problem:
    return Problem(
        f"{lock}: {what}; nothing was changed",
        todo=f"look again with: soal locks show {lock}",
        exit_code=EXIT_TRY_AGAIN,
    )
