"""Publish a snapshot in two phases: the manifest, which never changes, then `_CURRENT` by compare-and-swap."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from safewriter.objects.store import PreconditionFailed, StoreError
from safewriter.snapshots.errors import ManifestPublishError, PublishConflictError, PublishCurrentError
from safewriter.snapshots.format.current import CURRENT, Current, Publication, manifest_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.objects.store import ObjectStore
    from safewriter.snapshots.format.manifest import Manifest

__all__ = ["Base", "Publisher"]

_PAUSES_S: Final = (1.0, 2.0, 4.0)
_TRIES: Final = 20


@dataclass(frozen=True, slots=True)
class Base:
    """What was current when a build began: it may replace that, and nothing later. `etag` None: there was none."""

    etag: str | None
    current: Current | None

    @property
    def version(self) -> int:
        """The number of publications so far."""
        return 0 if self.current is None else self.current.version


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
            current = None if found is None else Current.decode(found.body, self.store.uri(CURRENT))
            base = Base(None if found is None else found.etag, current)
            if token is None or (current is not None and token == current.fencing_token):
                return base
            self._check_token(token, base)
            fenced = (current or Current.absent(self.now())).changed(fencing_token=token)
            try:
                return Base(self._write(base, fenced), fenced)
            except PreconditionFailed:
                continue
        raise StoreError(f"{self.store.uri(CURRENT)} changes faster than it can be written")

    def publish(self, manifest: Manifest, base: Base, *, token: int | None = None, attempt: str | None = None) -> str:
        """Make a manifest current, and return where it is. `attempt`: the name of the guarded attempt that does so.

        Raises `PublishConflictError` if another build has published since `base`, or with a higher token;
        `ManifestPublishError` if the manifest could not be written; `PublishCurrentError` if nobody knows whether it
        is current.
        """
        key = manifest_key(manifest.run_id, datetime.fromisoformat(manifest.created_at))
        ref = self.store.uri(key)
        if token is not None:
            self._check_token(token, base, ref)
        body = manifest.encode()
        try:
            self._again(lambda: self._write_manifest(key, body))
        except StoreError as error:
            raise ManifestPublishError(f"{ref} could not be written, so nothing was published: {error}") from error
        return self.point(ref, manifest, base, token=token, attempt=attempt)

    def point(
        self, ref: str, manifest: Manifest, base: Base, *, token: int | None = None, attempt: str | None = None
    ) -> str:
        """Make a manifest current that is at `ref`, and return that; raises as `publish` does."""
        before = base.current or Current.absent(self.now())
        published = before.published
        if attempt is not None:
            now_ms = round(self.now().timestamp() * 1000)
            told = Publication(before.version + 1, ref, manifest.rows, manifest.size, now_ms)
            published = before.with_publication(attempt, told)
        current = before.moved(
            ref,
            manifest.run_id,
            self.now(),
            fencing_token=before.fencing_token if token is None else token,
            published=published,
        )
        try:
            self._again(lambda: self._write(base, current))
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

    def _check_token(self, token: int, base: Base, ref: str | None = None) -> None:
        there = None if base.current is None else base.current.fencing_token
        if there is not None and token < there:
            raise PublishConflictError(
                f"{self.store.uri(CURRENT)} has token {there}, and this build has {token}: another job has had its turn"
                " since, so this snapshot is not current",
                manifest_ref=ref,
            )

    def _write_manifest(self, key: str, body: bytes) -> None:
        try:
            self.store.create(key, body)
        except PreconditionFailed:
            found = self.store.get(key)
            if found is None or found.body != body:  # else it is ours, and its reply was lost
                raise StoreError(f"{self.store.uri(key)} is there, and is not this build's manifest") from None

    def _write(self, base: Base, current: Current) -> str:
        """Write `_CURRENT` if it still is `base`; return its ETag."""
        body = current.encode()
        try:
            if base.etag is None:
                return self.store.create(CURRENT, body)
            return self.store.replace(CURRENT, body, etag=base.etag)
        except PreconditionFailed:
            found = self.store.get(CURRENT)
            if found is None or found.body != body:  # else it is ours, and its reply was lost
                raise
            return found.etag

    def _again(self, write: Callable[[], object]) -> None:
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
