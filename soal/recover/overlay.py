"""The store of `--dry-run`: it records the writes of a settling, and makes none."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from safewriter.objects import ListedObject, PreconditionFailed, StoredObject
from safewriter.objects.store import TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from safewriter.objects import ObjectStore, Upload

__all__ = ["Overlay"]

_SHOWN_MAX: Final = 200


class Overlay:
    """Reads go to the store below, writes stay here, in order, as `changes`; further ones are only counted."""

    def __init__(self, below: ObjectStore, now: Callable[[], datetime]) -> None:
        self._below = below
        self._now = now
        self._own: dict[str, StoredObject | None] = {}
        self._aborted: set[Upload] = set()
        self.changes: list[str] = []
        self.changes_more = 0

    def get(self, key: str, *, max_bytes: int | None = None) -> StoredObject | None:
        if key not in self._own:
            return self._below.get(key, max_bytes=max_bytes)
        found = self._own[key]
        if found is not None and max_bytes is not None and len(found.body) > max_bytes:
            raise TooLarge(self.uri(key), len(found.body), max_bytes)
        return found

    def stream(self, key: str) -> Iterator[bytes] | None:
        if key not in self._own:
            return self._below.stream(key)
        found = self._own[key]
        return None if found is None else iter([found.body])

    def create(self, key: str, body: bytes, *, tag: str = "") -> str:  # noqa: ARG002 - it changes no answer
        if self.get(key) is not None:
            raise PreconditionFailed(self.uri(key))
        return self.put(key, body)

    def replace(self, key: str, body: bytes, *, etag: str, tag: str = "") -> str:  # noqa: ARG002 - as above
        found = self.get(key)
        if found is None or found.etag != etag:
            raise PreconditionFailed(self.uri(key))
        return self.put(key, body)

    def put(self, key: str, body: bytes) -> str:
        etag = f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
        now = self._now()
        self._own[key] = StoredObject(key, body, etag, now, now)
        self._note(f"PUT {self.uri(key)}")
        return etag

    def delete(self, key: str) -> None:
        self._own[key] = None
        self._note(f"DELETE {self.uri(key)}")

    def delete_all(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.delete(key)

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ListedObject]:
        found = {
            listed.key: listed
            for listed in self._below.list(prefix, start_after=start_after)
            if listed.key not in self._own
        }
        for key, own in self._own.items():
            if own is not None and key.startswith(prefix) and key > start_after:
                found[key] = ListedObject(key, len(own.body), own.last_modified)
        yield from (found[key] for key in sorted(found))

    def uploads(self, prefix: str) -> Iterator[Upload]:
        yield from (upload for upload in self._below.uploads(prefix) if upload not in self._aborted)

    def abort(self, upload: Upload) -> None:
        self._aborted.add(upload)
        self._note(f"ABORT upload of {self.uri(upload.key)}")

    def uri(self, key: str) -> str:
        return self._below.uri(key)

    def _note(self, change: str) -> None:
        if len(self.changes) < _SHOWN_MAX:
            self.changes.append(change)
        else:
            self.changes_more += 1
