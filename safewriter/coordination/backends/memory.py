"""Locks in the memory of this process: for jobs on threads of one process, and for tests."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING

from safewriter.coordination.backend import RecordChanged, Stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safewriter.coordination.backend import Connection
    from safewriter.coordination.record import Record

__all__ = ["MemoryBackend", "by_name"]


class MemoryBackend:
    """Locks of one process."""

    server = ""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._records: dict[str, Stored] = {}
        self._versions = itertools.count(1)

    def read(self, lock: str) -> Stored | None:
        with self._changed:
            return self._records.get(lock)

    def write(self, record: Record, after: Stored | None) -> Stored:
        with self._changed:
            now = self._records.get(record.lock)
            if (None if now is None else now.version) != (None if after is None else after.version):
                raise RecordChanged(record.lock)
            stored = Stored(record, next(self._versions))
            self._records[record.lock] = stored
            self._changed.notify_all()
            return stored

    def wait(self, last: Stored | None, timeout_s: float, after: str = "") -> None:  # noqa: ARG002 - each change wakes
        with self._changed:
            if last is None or self._records.get(last.record.lock) == last:
                self._changed.wait(timeout_s)

    def locks(self) -> Iterator[str]:
        with self._changed:
            return iter(sorted(self._records))

    def listen(self, listener: Callable[[Connection], None]) -> None:
        """Do nothing: there are no sessions."""

    def close(self) -> None:
        """Do nothing: the locks stay for other users in this process."""


_NAMED: dict[str, MemoryBackend] = {}
_NAMING = threading.Lock()


def by_name(name: str) -> MemoryBackend:
    """Return the backend `memory://name` of this process."""
    with _NAMING:
        return _NAMED.setdefault(name, MemoryBackend())
