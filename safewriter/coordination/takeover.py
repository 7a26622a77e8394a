"""Settle what earlier holders left open, so that none of it can still land: this is how a token fences.

A guarded write is noted in the lock's record before it can commit, and only by the holder. So whoever takes the lock
over finds every write of the dead holder there. Settling puts a fence into the table, or finds the commit there: from
then on the table itself refuses what the dead holder may still send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.deadline import epoch_ms
from safewriter.errors import UnknownOutcomeError
from safewriter.objects.location import Location
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import OPEN
from safewriter.settle.recovery import Cause, Evidence, Recovery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from safewriter.coordination.record import OpenWrite
    from safewriter.objects.store import ObjectStore

__all__ = ["decided", "settle"]


def settle(
    write: OpenWrite,
    may_go_on: Callable[[], bool] = lambda: True,
    *,
    store: Callable[[Location], ObjectStore] | None = None,
    table_store: Callable[[str], ObjectStore] | None = None,
) -> None:
    """Settle a write of a holder that lost the lock, whether or not its process lives: it may commit no more.

    Raises `UnknownOutcomeError` if the verdict cannot be had now, also for a document that is gone or may not be read:
    the write was claimed before it was noted, so nobody knows whether it may still land.
    """
    from safewriter.objects import s3  # boto3

    checkpoints = Checkpoints((store or s3.open_store)(Location.parse(write.checkpoints)))
    recovery = Recovery(checkpoints, table_store or s3.table_store, clock=epoch_ms, may_go_on=may_go_on)
    if recovery.settle(write.write_key, Cause.TURN, Evidence(write.epoch)) is None:
        raise UnknownOutcomeError(
            f"{checkpoints.uri(write.write_key)} is not there, or may not be read, so nobody knows whether the write"
            " may still land. Give the job the right to read it; if it was deleted, look at the table, and strike the"
            f" write from the lock's record: soal locks forget LOCK --write {write.write_key}"
        )


def decided(writes: Iterable[OpenWrite]) -> Iterator[OpenWrite]:
    """Yield the writes whose documents have a verdict."""
    from safewriter.objects.s3 import open_store

    for write in writes:
        stored = Checkpoints(open_store(Location.parse(write.checkpoints))).read(write.write_key)
        if stored is not None and (stored.document.epoch > write.epoch or stored.document.status not in OPEN):
            yield write
