"""An object store in memory: for tests, and for crash states that are replayed without a server."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from safewriter.objects.store import PAGE, ListedObject, PreconditionFailed, StoredObject, TooLarge, Upload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_BLOCK = 65_536


class MemoryObjectStore:
    """A dictionary that behaves like an S3 bucket, including conditional writes and its clock."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC), bucket: str = "memory") -> None:
        self._now = now
        self._bucket = bucket
        self._lock = threading.Lock()
        self._objects: dict[str, tuple[bytes, str, datetime]] = {}
        self._uploads: set[Upload] = set()
        self.tags: dict[str, str] = {}
        """The tag of each object's last write."""

    def get(self, key: str, *, max_bytes: int | None = None) -> StoredObject | None:
        with self._lock:
            row = self._objects.get(key)
        if row is not None and max_bytes is not None and len(row[0]) > max_bytes:
            raise TooLarge(self.uri(key), len(row[0]), max_bytes, row[1])
        return None if row is None else StoredObject(key, *row, self._now())

    def stream(self, key: str) -> Iterator[bytes] | None:
        stored = self.get(key)
        if stored is None:
            return None
        return iter([stored.body[at : at + _BLOCK] for at in range(0, len(stored.body), _BLOCK)])

    def create(self, key: str, body: bytes, *, tag: str = "") -> str:
        with self._lock:
            if key in self._objects:
                raise PreconditionFailed(key)
            self.tags[key] = tag
            return self._write(key, body)

    def replace(self, key: str, body: bytes, *, etag: str, tag: str = "") -> str:
        with self._lock:
            if key not in self._objects or self._objects[key][1] != etag:
                raise PreconditionFailed(key)
            self.tags[key] = tag
            return self._write(key, body)

    def check_conditions(self, key: str, body: bytes) -> None:
        """It keeps them."""

    def put(self, key: str, body: bytes) -> str:
        with self._lock:
            self.tags[key] = ""
            return self._write(key, body)

    def delete(self, key: str) -> None:
        with self._lock:
            self._objects.pop(key, None)

    def delete_all(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.delete(key)

    def list(self, prefix: str, *, start_after: str = "", at_once: int = PAGE) -> Iterator[ListedObject]:
        with self._lock:
            rows = sorted(
                (key, len(body), modified)
                for key, (body, _, modified) in self._objects.items()
                if key.startswith(prefix) and key > start_after
            )
        for row in rows:
            yield ListedObject(*row)

    def uploads(self, prefix: str) -> Iterator[Upload]:
        with self._lock:
            uploads = sorted(self._uploads, key=lambda upload: (upload.key, upload.id))
        yield from (upload for upload in uploads if upload.key.startswith(prefix))

    def abort(self, upload: Upload) -> None:
        with self._lock:
            self._uploads.discard(upload)

    def begin_upload(self, upload: Upload) -> None:
        """Begin a multipart upload, for tests of the code that aborts it."""
        with self._lock:
            self._uploads.add(replace(upload, initiated=upload.initiated or self._now()))

    def uri(self, key: str) -> str:
        return f"s3://{self._bucket}/{key}"

    def _write(self, key: str, body: bytes) -> str:
        etag = '"' + hashlib.md5(body, usedforsecurity=False).hexdigest() + '"'  # S3's own ETag of a simple PUT
        self._objects[key] = (body, etag, self._now())
        return etag
