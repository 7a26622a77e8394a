"""The lock service of a command, its locks, and the two decisions that only an operator takes.

They end a holder's turn by force, and strike a write that no settler can settle.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from safewriter.coordination.backend import RecordChanged
from safewriter.coordination.backends.opening import open_backend, s3_backend
from safewriter.coordination.probe import is_probed
from safewriter.coordination.record import End
from safewriter.coordination.transitions import end
from safewriter.deadline import epoch_ms
from safewriter.errors import SettingError, UnreadableCheckpointError
from safewriter.objects import Location
from safewriter.record.checkpoints import Checkpoints
from soal.console.problem import EXIT_TRY_AGAIN, Failure, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safewriter.coordination.backend import Backend, Stored
    from safewriter.coordination.record import OpenWrite
    from safewriter.objects import ObjectStore
    from soal.s3_command import Call

_TRIES: Final = 50


class LockService:
    """A lock service, opened for one command. `uri` is its name in messages; `store` opens a checkpoint bucket."""

    def __init__(self, backend: Backend, uri: str, store: Callable[[Location], ObjectStore]) -> None:
        self.backend = backend
        self.uri = uri
        self.store = store

    @classmethod
    @contextmanager
    def open(cls, backend: str | None, call: Call) -> Iterator[LockService]:
        """Open the named service, or that of SW_LOCKS, or the checkpoint bucket. Raises `Problem`."""
        uri = backend or ("" if call.bucket else os.environ.get("SW_LOCKS", ""))
        service = _of_uri(uri, call) if uri else cls._of_bucket(call)
        try:
            yield service
        finally:
            service.backend.close()

    @classmethod
    def _of_bucket(cls, call: Call) -> LockService:
        store = call.checkpoints()
        return cls(s3_backend(store), store.uri("").rstrip("/"), call.target.store)

    def names(self) -> tuple[str, ...]:
        """Return the names of all locks."""
        return tuple(sorted(name for name in self.backend.locks() if not is_probed(name)))

    def read(self, lock: str) -> Stored:
        """Return a lock's record. If there is none, raises a `Problem` that names the existing locks."""
        try:
            stored = self.backend.read(lock)
        except UnreadableCheckpointError as error:
            raise Failure(str(error), todo="jobs wait until an earlier version of it is restored") from error
        if stored is None:
            names = ", ".join(self.names()) or "none"
            raise Failure(
                f"there is no lock {lock!r} in {self.uri}",
                todo=f"name one of those that are there ({names}), or another service with --backend",
            )
        return stored


def _of_uri(uri: str, call: Call) -> LockService:
    try:
        is_s3 = uri.startswith("s3://")
        if not is_s3 and (call.local or call.endpoint_url is not None):
            raise Problem(
                f"--local and --endpoint-url name an S3, and {uri} is not one",
                todo="leave them out (AWS_ENDPOINT_URL_DYNAMODB names a DynamoDB), or give --backend s3://…",
            )
        store = call.target.store
        return LockService(s3_backend(store(Location.parse(uri))) if is_s3 else open_backend(uri), uri, store)
    except (SettingError, ValueError) as error:
        raise Problem(str(error), todo="correct --backend, or SW_LOCKS") from error


def force(service: LockService, before: Stored) -> Stored:
    """End the lease in `before`, whatever else has changed in the record; return the new record.

    All writes of the lease become unsettled; the next holder settles them before its own turn. Raises `Problem` if the
    lease has ended meanwhile.
    """
    lock, holder = before.record.lock, before.record.holder
    if holder is None:
        raise ValueError(f"{lock} is free")
    stored = before
    for _ in range(_TRIES):
        try:
            return service.backend.write(end(stored.record, End.FORCED, epoch_ms()), stored)
        except RecordChanged:
            stored = service.read(lock)
            if not stored.record.is_held_by(holder.nonce):
                raise _conflict(lock, f"the turn of {holder.job} has ended by itself") from None
    raise _conflict(lock, "its record changes faster than it can be written")


def forget(service: LockService, before: Stored, write_key: str) -> Stored:
    """Strike an unsettled write whose document is gone; return the new record.

    Raises `Problem` if the record does not name the write, or if its document exists: then it can be settled.
    """
    writes = [write for write in before.record.unsettled if write.write_key == write_key]
    if not writes:
        raise Failure(
            f"{write_key} is not an unsettled write of {before.record.lock}",
            todo=f"look for it with: soal locks show {before.record.lock}",
        )
    for write in writes:
        _check_gone(write, Checkpoints(service.store(Location.parse(write.checkpoints))))
    stored = before
    for _ in range(_TRIES):
        unsettled = tuple(write for write in stored.record.unsettled if write not in writes)
        try:
            return service.backend.write(replace(stored.record, unsettled=unsettled), stored)
        except RecordChanged:
            stored = service.read(before.record.lock)
    raise _conflict(before.record.lock, "its record changes faster than it can be written")


def _check_gone(write: OpenWrite, checkpoints: Checkpoints) -> None:
    stored = checkpoints.read(write.write_key)
    if stored is not None and stored.document.epoch >= write.epoch:
        raise Failure(
            f"{checkpoints.uri(write.write_key)} is there, so the write can be settled; nothing was changed",
            todo=f"the next holder settles it; or settle it now with: soal recover --write {write.write_key}",
        )


def _conflict(lock: str, change: str) -> Problem:
    return Problem(
        f"{lock}: {change}; nothing was changed",
        todo=f"look again with: soal locks show {lock}",
        exit_code=EXIT_TRY_AGAIN,
    )
