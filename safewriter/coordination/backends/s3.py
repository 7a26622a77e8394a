"""Locks on S3: one object for each lock, under `locks/`, changed by conditional PUTs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from safewriter.coordination.backend import RecordChanged, Stored
from safewriter.coordination.record import RECORD_MAX_BYTES, Record
from safewriter.errors import UnreadableCheckpointError
from safewriter.objects.store import PreconditionFailed, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safewriter.coordination.backend import Connection
    from safewriter.objects.store import ObjectStore

__all__ = ["S3Backend"]

_FOLDER: Final = "locks/"
_SUFFIX: Final = ".json"


class S3Backend:
    """Locks in one bucket, or below one prefix of it.

    S3 keeps the conditions of writes. Any other `server` is probed: some ignore conditional headers.
    """

    def __init__(self, store: ObjectStore, *, server: str = "", sleep: Callable[[float], None] = time.sleep) -> None:
        self._store = store
        self._sleep = sleep
        self.server = server

    def read(self, lock: str) -> Stored | None:
        try:
            stored = self._store.get(_key(lock), max_bytes=RECORD_MAX_BYTES)
        except TooLarge as error:
            raise UnreadableCheckpointError(f"{error}; restore an earlier version of it") from error
        if stored is None:
            return None
        return Stored(Record.decode(stored.body, self._store.uri(stored.key)), stored.etag)

    def write(self, record: Record, after: Stored | None) -> Stored:
        key, body = _key(record.lock), record.encode()
        try:
            if after is None:
                return Stored(record, self._store.create(key, body))
            return Stored(record, self._store.replace(key, body, etag=str(after.version)))
        except PreconditionFailed as error:
            raise RecordChanged(record.lock) from error

    def wait(self, last: Stored | None, timeout_s: float, after: str = "") -> None:  # noqa: ARG002 - S3 reports no changes
        self._sleep(timeout_s)

    def locks(self) -> Iterator[str]:
        for entry in self._store.list(_FOLDER):
            if entry.key.endswith(_SUFFIX):
                yield entry.key[len(_FOLDER) : -len(_SUFFIX)]

    def listen(self, listener: Callable[[Connection], None]) -> None:
        """S3 has no sessions."""

    def close(self) -> None:
        """S3 has no sessions."""


def _key(lock: str) -> str:
    return f"{_FOLDER}{lock}{_SUFFIX}"
