"""Publish a snapshot in two phases: the manifest, which never changes, then `_CURRENT` by compare-and-swap."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from safewriter.objects.store import PreconditionFailed, StoreError
from safewriter.snapshots.errors import PublishConflictError, PublishCurrentError
from safewriter.snapshots.manifest import CURRENT, Current, manifest_key, stamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.objects.store import ObjectStore
    from safewriter.snapshots.manifest import Manifest

__all__ = ["Base", "Publisher"]

_PAUSES_S: Final = (1.0, 2.0, 4.0)
_TRIES: Final = 20


@dataclass(frozen=True, slots=True)
class Base:
    """What was current when a build began: it may replace that, and nothing later. `etag` None: there was none."""

    etag: str | None
    current: Current | None


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes below one prefix."""

    store: ObjectStore
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def base(self, token: int | None = None) -> Base:
        """Return what is current now. A `token` is written there at once, if a lower one is: an earlier holder that
        goes on publishes nothing after that.

        Raises `ManifestParseError` if nobody can read it, `PublishConflictError` if a higher token is there.
        """
        for _ in range(_TRIES):
            found = self.store.get(CURRENT)
            if found is None:
                return Base(None, None)
            current = Current.decode(found.body, self.store.uri(CURRENT))
            if token is None or token == current.fencing_token:
                return Base(found.etag, current)
            self._check_token(token, current, current.manifest_ref)
            fenced = replace(current, fencing_token=token)
            try:
                return Base(self.store.replace(CURRENT, fenced.encode(), etag=found.etag), fenced)
            except PreconditionFailed:
                continue
        raise StoreError(f"{self.store.uri(CURRENT)} changes faster than it can be written")

    def publish(self, manifest: Manifest, base: Base, *, token: int | None = None) -> str:
        """Make a manifest current, and return where it is.

        Raises `PublishConflictError` if another build has published since `base`, or with a higher token;
        `PublishCurrentError` if nobody knows whether this one is current.
        """
        key = manifest_key(manifest.run_id, datetime.fromisoformat(manifest.created_at))
        self._again(lambda: self._write_manifest(key, manifest.encode()))
        ref = self.store.uri(key)
        before = None if base.current is None else base.current.fencing_token
        if token is not None and base.current is not None:
            self._check_token(token, base.current, ref)
        current = Current(ref, manifest.run_id, stamp(self.now()), before if token is None else token)
        try:
            self._again(lambda: self._swap(current, base))
        except PreconditionFailed:
            raise PublishConflictError(
                f"{self.store.uri(CURRENT)} has changed since this build began, so its snapshot is not current; build"
                f" again, or make it current by a rollback. The manifest is at {ref}",
                manifest_ref=ref,
            ) from None
        except StoreError as error:
            raise PublishCurrentError(
                f"nobody knows whether {self.store.uri(CURRENT)} points to {ref} now: {error}. Read it; build again"
                " if it does not",
                manifest_ref=ref,
            ) from error
        return ref

    def _check_token(self, token: int, current: Current, ref: str) -> None:
        if current.fencing_token is not None and token < current.fencing_token:
            raise PublishConflictError(
                f"{self.store.uri(CURRENT)} has token {current.fencing_token}, and this build has {token}: another job"
                " has had its turn since, so this snapshot is not current",
                manifest_ref=ref,
            )

    def _write_manifest(self, key: str, body: bytes) -> None:
        try:
            self.store.create(key, body)
        except PreconditionFailed:
            found = self.store.get(key)
            if found is None or found.body != body:  # else it is ours, and its reply was lost
                raise StoreError(f"{self.store.uri(key)} is there, and is not this build's manifest") from None

    def _swap(self, current: Current, base: Base) -> None:
        body = current.encode()
        try:
            if base.etag is None:
                self.store.create(CURRENT, body)
            else:
                self.store.replace(CURRENT, body, etag=base.etag)
        except PreconditionFailed:
            found = self.store.get(CURRENT)
            if found is None or found.body != body:  # else it is ours, and its reply was lost
                raise

    def _again(self, write: Callable[[], None]) -> None:
        for pause_s in _PAUSES_S:
            try:
                write()
            except PreconditionFailed:
                raise
            except StoreError as error:
                if error.denied:
                    raise
                self.sleep(pause_s)
            else:
                return
        write()
