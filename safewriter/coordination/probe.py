"""Whether a server keeps the conditions of writes. Some ignore the headers, and some let two writers win."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import TYPE_CHECKING, Final

from safewriter.coordination.backend import RecordChanged
from safewriter.coordination.record import Record
from safewriter.errors import UnsupportedError
from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from safewriter.coordination.backend import Backend, Stored

__all__ = ["check", "is_probed", "noted"]

_LOCK: Final = "_probe"
"""No job's lock can have this name: a probe resets the record."""
_SERVERS_MAX: Final = 8
_WRITERS: Final = 8
_ROUNDS: Final = 3
_TRIES: Final = 50
"""Rounds are tried so often: other jobs may probe at the same time, and the winner is one of theirs then."""


def check(backend: Backend) -> None:
    """Raise `UnsupportedError` if the server does not keep conditions: stale writers, then several at once.

    Raises `StoreError` if too many others probe at the same time.
    """
    stored = backend.read(_LOCK)
    if stored is None and _winners(backend, None) > 1:
        raise _refused(backend, "several writers created one record that was not there")
    won = 0
    for rounds in range(1, _TRIES + 1):
        stored = backend.read(_LOCK)
        if stored is None:
            raise _refused(backend, "a record that was written cannot be read")
        if _wins(backend, None):
            raise _refused(backend, "it creates a record that is there, in spite of the condition")
        winners = _winners(backend, stored)
        if winners > 1 or (winners == 0 and _is_unchanged(backend, stored)):
            raise _refused(backend, f"{winners} of {_WRITERS} writers replaced one version of a record")
        if _wins(backend, stored):
            raise _refused(backend, "it replaces a record that has changed, in spite of the condition")
        won += winners
        if won and rounds >= _ROUNDS:
            return
    raise StoreError(f"{backend.server} is probed by too many jobs at once")


def noted(record: Record, server: str) -> Record:
    """Note that the lock's server was probed."""
    return replace(record, servers=(*record.servers, server)[-_SERVERS_MAX:])


def is_probed(lock: str) -> bool:
    """Tell whether this is the record that probes write, and no lock."""
    return lock == _LOCK


def _wins(backend: Backend, after: Stored | None) -> bool:
    try:
        backend.write(Record(_LOCK), after)
    except RecordChanged:
        return False
    return True


def _is_unchanged(backend: Backend, stored: Stored) -> bool:
    now = backend.read(_LOCK)
    return now is not None and now.version == stored.version


def _winners(backend: Backend, after: Stored | None) -> int:
    barrier = Barrier(_WRITERS)

    def write() -> bool:
        barrier.wait()
        return _wins(backend, after)

    with ThreadPoolExecutor(_WRITERS) as pool:
        return sum(one.result() for one in [pool.submit(write) for _ in range(_WRITERS)])


def _refused(backend: Backend, problem: str) -> UnsupportedError:
    return UnsupportedError(
        f"{backend.server or 'this server'} cannot keep a lock: {problem}. Nothing was locked; name another service"
        " with job.coordinator.backend"
    )
