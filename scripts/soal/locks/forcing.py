"""What only an operator decides: to end a holder's turn by force, to strike a write that nobody can settle."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from safewriter.coordination.backend import RecordChanged
from safewriter.coordination.record import End
from safewriter.coordination.transitions import end
from safewriter.deadline import epoch_ms
from scripts.soal.console.problem import EXIT_FAILED, EXIT_TRY_AGAIN, Problem

if TYPE_CHECKING:
    from safewriter.coordination.backend import Stored
    from scripts.soal.locks.service import LockService

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
                raise _changed(f"the turn of {seen.record.holder.job} has ended by itself") from None
    raise _changed(f"the record of {seen.record.lock} changes faster than it can be written")


def forget(service: LockService, seen: Stored, write_key: str) -> Stored:
    """Strike an unsettled write from the record; return the record without it. Raises `Problem` if it is not there."""
    stored = seen
    for _ in range(_TRIES):
        record = stored.record
        left = tuple(write for write in record.unsettled if write.write_key != write_key)
        if len(left) == len(record.unsettled):
            raise Problem(
                f"{write_key} is no unsettled write of {record.lock}",
                todo=f"look for it with: soal locks show {record.lock}",
                exit_code=EXIT_FAILED,
            )
        try:
            return service.backend.write(replace(record, unsettled=left), stored)
        except RecordChanged:
            stored = service.read(record.lock)
    raise _changed(f"the record of {seen.record.lock} changes faster than it can be written")


def _changed(what: str) -> Problem:
    return Problem(f"{what}; nothing was released", todo="look again with: soal locks show", exit_code=EXIT_TRY_AGAIN)
