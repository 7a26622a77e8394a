"""Whether a server keeps the conditions of writes. Some ignore the headers, and some let two writers win."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import TYPE_CHECKING, Final

from safewriter.coordination.backend import RecordChanged
from safewriter.coordination.record import Record
from safewriter.errors import UnsupportedError

if TYPE_CHECKING:
    from safewriter.coordination.backend import Backend, Stored

__all__ = ["check", "is_probed", "noted"]

_LOCK: Final = "_probe"
"""No job's lock can have this name: a probe resets the record."""
_WRITERS: Final = 8
_ROUNDS: Final = 3


def check(backend: Backend) -> None:
    """Raise `UnsupportedError` if the server does not keep conditions: stale writers, then several at once."""
    stored = backend.read(_LOCK)
    if stored is None and _winners(backend, None) != 1:
        raise _refused(backend, "several writers created one object with If-None-Match")
    for _ in range(_ROUNDS):
        stored = backend.read(_LOCK)
        if stored is None:
            raise _refused(backend, "an object that was written cannot be read")
        if _wins(backend, None):
            raise _refused(backend, "it creates an object that is there, in spite of If-None-Match")
        if (winners := _winners(backend, stored)) != 1:
            raise _refused(backend, f"{winners} of {_WRITERS} writers replaced one version with If-Match")
        if _wins(backend, stored):
            raise _refused(backend, "it replaces an object that has changed, in spite of If-Match")


def noted(record: Record, server: str) -> Record:
    """Note that the lock's server was probed."""
    return replace(record, server=server)


def is_probed(lock: str) -> bool:
    """Tell whether this is the record that probes write, and no lock."""
    return lock == _LOCK


def _wins(backend: Backend, after: Stored | None) -> bool:
    try:
        backend.write(Record(_LOCK), after)
    except RecordChanged:
        return False
    return True


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
