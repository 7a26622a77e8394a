"""Probe whether a server keeps the conditions of writes. Some ignore the headers, and some let two writers win."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import TYPE_CHECKING, Final

from safewriter.coordination.backend import RecordChanged
from safewriter.coordination.record import Record
from safewriter.entropy import unique_id
from safewriter.errors import UnsupportedError

if TYPE_CHECKING:
    from safewriter.coordination.backend import Backend, Stored

__all__ = ["check", "is_probed", "noted"]

_PREFIX: Final = "_probe"
"""No job's lock can have such a name."""
_SERVERS_MAX: Final = 8
_WRITERS: Final = 8
_ROUNDS: Final = 3


def check(backend: Backend) -> None:
    """Raise `UnsupportedError` if the server does not keep conditions. Try concurrent writers, then stale ones.

    Each probe has its own record, which is never deleted, so concurrent probes do not disturb each other.
    """
    record = Record(f"{_PREFIX}-{unique_id()}")
    if (winners := _winners(backend, record, None)) != 1:
        raise _refused(backend, f"{winners} of {_WRITERS} writers created one record that was not there")
    for _ in range(_ROUNDS):
        stored = backend.read(record.lock)
        if stored is None:
            raise _refused(backend, "a record that was written cannot be read")
        if _wins(backend, record, None):
            raise _refused(backend, "it creates a record that is there, in spite of the condition")
        if (winners := _winners(backend, record, stored)) != 1:
            raise _refused(backend, f"{winners} of {_WRITERS} writers replaced one version of a record")
        if _wins(backend, record, stored):
            raise _refused(backend, "it replaces a record that has changed, in spite of the condition")


def noted(record: Record, server: str) -> Record:
    """Return the record with the server noted as probed."""
    return replace(record, servers=(*record.servers, server)[-_SERVERS_MAX:])


def is_probed(lock: str) -> bool:
    """Return whether this record was written by a probe, and is no lock."""
    return lock.startswith(_PREFIX)


def _wins(backend: Backend, record: Record, after: Stored | None) -> bool:
    try:
        backend.write(record, after)
    except RecordChanged:
        return False
    return True


def _winners(backend: Backend, record: Record, after: Stored | None) -> int:
    barrier = Barrier(_WRITERS)

    def write() -> bool:
        barrier.wait()
        return _wins(backend, record, after)

    with ThreadPoolExecutor(_WRITERS) as pool:
        return sum(future.result() for future in [pool.submit(write) for _ in range(_WRITERS)])


def _refused(backend: Backend, problem: str) -> UnsupportedError:
    return UnsupportedError(
        f"{backend.server or 'this server'} cannot keep a lock: {problem}. Nothing was locked; name another service"
    )
