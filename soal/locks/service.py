"""The lock service that a command talks to, and its locks."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from safewriter.coordination.backends.opening import open_backend, s3_backend
from safewriter.coordination.probe import is_probed
from safewriter.errors import SettingError, UnreadableCheckpointError
from safewriter.objects import Location
from soal.console.problem import EXIT_FAILED, Problem
from soal.target import asking, checkpoint_store, target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safewriter.coordination.backend import Backend, Stored
    from safewriter.objects import ObjectStore
    from soal.home import Home

__all__ = ["LockService"]


class LockService:
    """A lock service, opened for one command. `where` names it for people; `store` opens a checkpoint bucket."""

    def __init__(self, backend: Backend, where: str, store: Callable[[Location], ObjectStore]) -> None:
        self.backend = backend
        self.where = where
        self.store = store

    @classmethod
    @contextmanager
    def open(
        cls, backend: str | None, endpoint_url: str | None, bucket: str | None, home: Home, *, local: bool
    ) -> Iterator[LockService]:
        """Open the named service; without a name SW_LOCKS, else the checkpoint bucket. Raises `Problem`."""
        uri = backend or ("" if bucket else os.environ.get("SW_LOCKS", ""))
        with asking():
            opened = _named(uri, endpoint_url, home, local=local) if uri else None
            service = opened or cls._of_bucket(endpoint_url, bucket, home, local=local)
            try:
                yield service
            finally:
                service.backend.close()

    @classmethod
    def _of_bucket(cls, endpoint_url: str | None, bucket: str | None, home: Home, *, local: bool) -> LockService:
        found = target(endpoint_url, home, local=local)
        store = checkpoint_store(found, bucket, home)
        return cls(s3_backend(store), store.uri("").rstrip("/"), found.store)

    def names(self) -> tuple[str, ...]:
        """Return the names of the locks that are there."""
        return tuple(sorted(name for name in self.backend.locks() if not is_probed(name)))

    def read(self, lock: str) -> Stored:
        """Return a lock's record. Raises `Problem`, which names the locks that are there, if there is none."""
        try:
            stored = self.backend.read(lock)
        except UnreadableCheckpointError as error:
            raise Problem(
                str(error), todo="jobs wait until an earlier version of it is restored", exit_code=EXIT_FAILED
            ) from error
        if stored is None:
            there = ", ".join(self.names()) or "none"
            raise Problem(
                f"there is no lock {lock!r} in {self.where}",
                todo=f"name one of those that are there ({there}), or another service with --backend",
                exit_code=EXIT_FAILED,
            )
        return stored


def _named(uri: str, endpoint_url: str | None, home: Home, *, local: bool) -> LockService:
    try:
        is_s3 = uri.startswith("s3://")
        if not is_s3 and (local or endpoint_url is not None):
            raise Problem(
                f"--local and --endpoint-url name an S3, and {uri} is none",
                todo="leave them out (AWS_ENDPOINT_URL_DYNAMODB names a DynamoDB), or give --backend s3://…",
            )
        found = target(endpoint_url, home, local=local)
        if not is_s3:
            return LockService(open_backend(uri), uri, found.store)
        return LockService(s3_backend(found.store(Location.parse(uri))), uri, found.store)
    except (SettingError, ValueError) as error:
        raise Problem(str(error), todo="correct --backend, or SW_LOCKS") from error
