"""Settle what earlier holders left open, so that none of it can still land: this is how a token fences.

A guarded write is noted in the lock's record before it can commit, and only by the holder. So whoever takes the lock
over finds every write of the dead holder there. Settling puts a fence into the table, or finds the commit there: from
then on the table itself refuses what the dead holder may still send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.deadline import epoch_ms
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
    store: Callable[[Location], ObjectStore] | None = None,
    table_store: Callable[[str], ObjectStore] | None = None,
) -> None:
    """Settle a write of a holder that lost the lock, whether or not its process lives: it may commit no more.

    Raises `UnknownOutcomeError` if the verdict cannot be had now.
    """
    from safewriter.objects import s3  # boto3

    checkpoints = Checkpoints((store or s3.open_store)(Location.parse(write.checkpoints)))
    recovery = Recovery(checkpoints, table_store or s3.table_store, clock=epoch_ms)
    recovery.settle(write.write_key, Cause.TURN, Evidence(write.epoch))


def decided(writes: Iterable[OpenWrite]) -> Iterator[OpenWrite]:
    """Yield the writes whose documents have a verdict."""
    from safewriter.objects.s3 import open_store

    for write in writes:
        stored = Checkpoints(open_store(Location.parse(write.checkpoints))).read(write.write_key)
        if stored is not None and (stored.document.epoch > write.epoch or stored.document.status not in OPEN):
            yield write
