"""Settle the open writes of earlier holders, so that none of them can still land: this is how a token fences.

The holder notes a guarded write in the lock's record before the write can commit. So the job that takes the lock over
finds every write of the dead holder there. Settling puts a fence into the table, or finds the commit there: from then
on the table itself refuses any late request of the dead holder.
"""

from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from safewriter.deadline import epoch_ms
from safewriter.errors import UnknownOutcomeError
from safewriter.objects.location import Location
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import OPEN
from safewriter.settings import audits
from safewriter.settle.recovery import Cause, Evidence, Recovery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from safewriter.coordination.record import OpenWrite
    from safewriter.objects.store import ObjectStore

__all__ = ["decided", "settle"]

_log = logging.getLogger(__name__)
_OLD_MS: Final = 7 * 24 * 3_600_000
_READERS: Final = 16


def settle(
    write: OpenWrite,
    may_go_on: Callable[[], bool] = lambda: True,
    *,
    store: Callable[[Location], ObjectStore] | None = None,
    table_store: Callable[[str], ObjectStore] | None = None,
    spark_settings: Mapping[str, str] | None = None,
) -> None:
    """Settle a write of a holder that lost the lock, so that it cannot commit any more even if its process is alive.

    `spark_settings` name the catalogs that this job reaches, by default those of `SOAL_CONF`.

    Raises `UnknownOutcomeError` if there is no verdict now. That includes a document that may not be read, is gone, or
    is older than the write: the write was claimed before it was noted, so it may still land. A write that was noted
    more than a week ago and whose document is gone is over: finished documents expire, and the sweeper gives a job up
    after that time.
    """
    from safewriter.objects import s3  # boto3

    checkpoints = Checkpoints((store or s3.open_store)(Location.parse(write.checkpoints)))
    recovery = Recovery(
        checkpoints,
        table_store or s3.table_store,
        clock=epoch_ms,
        audit_log=audits(os.environ),
        may_go_on=may_go_on,
        spark_settings=spark_settings,
    )
    stored = recovery.settle(write.write_key, Cause.TURN, Evidence(write.epoch))
    if stored is not None and stored.document.epoch >= write.epoch:
        return
    if write.noted_ms >= epoch_ms() - _OLD_MS:
        raise UnknownOutcomeError(
            f"{checkpoints.uri(write.write_key)} is not there, or is older than the write, so nobody knows whether the"
            " write may still land. If it was deleted, look at the"
            f" table, and strike the write from the lock's record: soal locks forget LOCK --write {write.write_key}"
        )
    _log.warning(
        "write %s of an earlier turn has no document at %s any more, and was noted more than a week ago: it is over",
        write.write_key,
        checkpoints.uri(write.write_key),
    )


def decided(writes: Iterable[OpenWrite]) -> Iterator[OpenWrite]:
    """Yield the writes whose documents have a verdict."""
    from safewriter.objects.s3 import open_store

    def is_decided(write: OpenWrite) -> bool:
        stored = Checkpoints(open_store(Location.parse(write.checkpoints))).read(write.write_key)
        return stored is not None and (stored.document.epoch > write.epoch or stored.document.status not in OPEN)

    writes = list(writes)
    with ThreadPoolExecutor(_READERS) as pool:  # in sequence, a turn with many writes would outlast its lease
        verdicts = pool.map(is_decided, writes)
        yield from (write for write, decided in zip(writes, verdicts, strict=True) if decided)
