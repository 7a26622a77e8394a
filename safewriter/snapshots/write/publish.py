"""Publish a snapshot in two phases: the manifest, which never changes, then `_CURRENT` by compare-and-swap."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from safewriter.objects.store import PreconditionFailed, StoreError
from safewriter.snapshots.errors import (
    ManifestParseError,
    ManifestPublishError,
    PublishConflictError,
    PublishCurrentError,
)
from safewriter.snapshots.format.current import (
    CURRENT,
    CURRENT_MAX_BYTES,
    Current,
    ManifestAt,
    Publication,
    manifest_key,
)
from safewriter.snapshots.format.manifest import MANIFEST_MAX_BYTES, Manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.objects.store import ObjectStore

__all__ = ["Base", "Publisher"]

_PAUSES_S: Final = (1.0, 2.0, 4.0)
_TRIES: Final = 20


@dataclass(frozen=True, slots=True)
class Base:
    """The `_CURRENT` that a build began with; it may not replace a later publication. `etag` None: there was none."""

    etag: str | None
    current: Current | None

    @property
    def version(self) -> int:
        """The number of publications so far."""
        return 0 if self.current is None else self.current.version

    @property
    def shows(self) -> tuple[int, str | None]:
        """The current publication: its number, and its manifest."""
        return self.version, None if self.current is None else self.current.manifest_ref

    @property
    def manifest(self) -> ManifestAt | None:
        """The current manifest."""
        if self.current is None or self.current.manifest_ref is None:
            return None
        return ManifestAt(self.current.manifest_ref, self.current.sha256_of(self.current.manifest_ref))

    @property
    def token(self) -> int | None:
        """The token of the last turn in which a build began."""
        return None if self.current is None else self.current.fencing_token

    def has_fenced(self, attempt: str) -> bool:
        """Return whether a settler has fenced the attempt."""
        return self.current is not None and attempt in self.current.fenced


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes below one prefix."""

    store: ObjectStore
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def base(self, token: int | None = None) -> Base:
        """Return `_CURRENT`. First write a `token` there if it has none or a lower one: then an earlier holder of the
        lock cannot publish any more.

        Raises `ManifestParseError` if it is damaged, `PublishConflictError` if it has a higher token.
        """
        for _ in range(_TRIES):
            base = self._read()
            if token is None or token == base.token:
                return base
            self._check_token(token, base)
            fenced = (base.current or Current.absent(self.now())).changed(fencing_token=token)
            try:
                return Base(self._write(base, fenced), fenced)
            except PreconditionFailed:
                continue
        raise StoreError(f"{self.store.uri(CURRENT)} changes faster than it can be written")

    def publish(self, manifest: Manifest, base: Base, *, token: int | None = None) -> str:
        """Write a manifest, make it current, and return its URL. Raises as `write_manifest` and `point` do."""
        written = self.write_manifest(manifest, base, token=token)
        self.point(written, manifest, base, token=token)
        return written.ref

    def write_manifest(self, manifest: Manifest, base: Base, *, token: int | None = None) -> ManifestAt:
        """Write a manifest, and return where it is. Raises `ManifestPublishError`, or `PublishConflictError` if `base`
        has a higher token.
        """
        key = manifest_key(manifest.run_id, datetime.fromisoformat(manifest.created_at))
        if token is not None:
            self._check_token(token, base)
        body = manifest.encode()
        if len(body) > MANIFEST_MAX_BYTES:
            raise ManifestPublishError(
                f"{self.store.uri(key)} would have {len(body):,} bytes, more than the {MANIFEST_MAX_BYTES:,} that are"
                " read, so nothing was published. Take fewer shards, shorter keys or fewer custom_manifest_fields"
            )
        try:
            digest = Manifest.decode(body, self.store.uri(key)).sha256
        except ManifestParseError as error:
            raise ManifestPublishError(f"nobody could read the manifest, so nothing was published: {error}") from error
        try:
            self._again(lambda: self._write_manifest(key, body))
        except StoreError as error:
            raise ManifestPublishError(
                f"{self.store.uri(key)} could not be written, so nothing was published: {error}"
            ) from error
        return ManifestAt(self.store.uri(key), digest)

    def point(
        self, at: ManifestAt, manifest: Manifest, base: Base, *, token: int | None = None, attempt: str | None = None
    ) -> Current:
        """Make the manifest at a place current. `attempt`: the name of the attempt, if it is guarded.

        Raises `PublishConflictError` if another build has published or had a turn since `base`, or if a settler has
        fenced the attempt; `ManifestPublishError` if the store refuses the caller, so that nothing was published;
        `PublishCurrentError` if it is unknown whether the manifest is current.
        """
        ref = at.ref
        try:
            for _ in range(_TRIES):
                current = self._next(at, manifest, base, token, attempt)
                try:
                    self._again(lambda: self._write(base, current))  # noqa: B023 - it is called in this round
                except PreconditionFailed:
                    now = self._read()
                    if now.current is not None and now.current.has_published(ref, attempt, base.version):
                        return now.current  # it had landed, its reply was lost, and `_CURRENT` has changed since
                    self._check_unmoved(ref, now, base, token, attempt)
                    base = now
                else:
                    return current
        except StoreError as error:
            raise PublishCurrentError(
                f"nobody knows whether {self.store.uri(CURRENT)} points to {ref} now: {error}. Read it; build again"
                " if it does not",
                manifest_ref=ref,
            ) from error
        raise PublishConflictError(
            f"{self.store.uri(CURRENT)} changes faster than it can be written; build again", manifest_ref=ref
        )

    def _next(self, at: ManifestAt, manifest: Manifest, base: Base, token: int | None, attempt: str | None) -> Current:
        before = base.current or Current.absent(self.now())
        published = before.published
        if attempt is not None:
            now_ms = round(self.now().timestamp() * 1000)
            mark = Publication(before.version + 1, at.ref, manifest.rows, manifest.size, now_ms)
            published = before.with_publication(attempt, mark)
        return before.moved(
            at.ref,
            manifest.run_id,
            self.now(),
            sha256=at.sha256,
            fencing_token=before.fencing_token if token is None else token,
            published=published,
        )

    def _check_unmoved(self, ref: str, now: Base, base: Base, token: int | None, attempt: str | None) -> None:
        """Raise `PublishConflictError` unless only fences and tokens have changed since `base`."""
        if token is not None:
            self._check_token(token, now, ref)
        elif now.token != base.token:
            raise PublishConflictError(
                f"another job has had a turn with {self.store.uri(CURRENT)} since this build began, so its snapshot,"
                f" {ref}, is not current; build again",
                manifest_ref=ref,
            )
        if now.shows != base.shows or (attempt is not None and now.has_fenced(attempt)):
            raise PublishConflictError(
                f"{self.store.uri(CURRENT)} has changed since this build began, so its snapshot, {ref}, is not current;"
                " build again",
                manifest_ref=ref,
            )

    def _read(self) -> Base:
        stored = self.store.get(CURRENT, max_bytes=CURRENT_MAX_BYTES)
        if stored is None:
            return Base(None, None)
        return Base(stored.etag, Current.decode(stored.body, self.store.uri(CURRENT)))

    def _check_token(self, token: int, base: Base, ref: str | None = None) -> None:
        if base.token is not None and token < base.token:
            raise PublishConflictError(
                f"{self.store.uri(CURRENT)} has token {base.token}, and this build has {token}: another job has had a"
                " turn since, so this snapshot is not current. If the lock has given no such token (soal locks show),"
                " it is another lock than before, or somebody has changed the object: let no build run, then"
                " soal snapshot rollback --ref CURRENT-MANIFEST --forget-token",
                manifest_ref=ref,
            )

    def _write_manifest(self, key: str, body: bytes) -> None:
        try:
            self.store.create(key, body)
        except PreconditionFailed:
            stored = self.store.get(key, max_bytes=len(body))
            if stored is None or stored.body != body:  # else this build has written it, and the reply was lost
                raise StoreError(f"{self.store.uri(key)} is there, and is not this build's manifest") from None

    def _write(self, base: Base, current: Current) -> str:
        """Write `_CURRENT` if it still is `base`; return its ETag."""
        if base.etag is None:
            return self.store.create(CURRENT, current.encode())
        return self.store.replace(CURRENT, current.encode(), etag=base.etag)

    def _again(self, write: Callable[[], object]) -> None:
        """Write, and again after an error that may pass. Raises `ManifestPublishError` if the store refuses the caller
        at once: no request of this write can have landed.
        """
        for number, pause_s in enumerate((*_PAUSES_S, None)):
            try:
                write()
            except StoreError as error:
                if error.denied and not number:
                    raise ManifestPublishError(f"nothing was published: {error}") from error
                if error.denied or pause_s is None:
                    raise
                self.sleep(pause_s)
            else:
                return
