"""The operations on objects: everything else is built from them.

A conditional write has three outcomes: it won, it lost (`PreconditionFailed`), or that is unknown (`StoreError`).
An implementation must not report a write of its own that landed as lost: when the answer to the first try is lost, the
retry meets its own object and gets 412 (aws/aws-sdk-java-v2#6580). It compares the body: two writers never send equal
bytes here, since every document carries a nonce.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from safewriter.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

__all__ = [
    "PAGE",
    "ListedObject",
    "ObjectStore",
    "PreconditionFailed",
    "StoreError",
    "StoredObject",
    "TooLarge",
    "Upload",
    "batches",
    "is_there",
    "paced",
]

_T = TypeVar("_T")
PAGE: Final = 1000
"""The most objects that S3 deletes, or lists, by one request."""


class PreconditionFailed(Exception):  # noqa: N818 - the name of the HTTP status, as in boto3 and the S3 documentation
    """The object existed already (`create`) or was no longer the one that was read (`replace`)."""


class TooLarge(StoreError):  # noqa: N818 - as above
    """The object, with this ETag, has more bytes than its reader takes into memory. None of them was read."""

    def __init__(self, where: str, size: int, max_bytes: int, etag: str = "") -> None:
        super().__init__(f"{where} has {size:,} bytes, more than the {max_bytes:,} that such an object may have")
        self.etag = etag


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as read. `server_date` is the store's own clock when it answered."""

    key: str
    body: bytes
    etag: str
    last_modified: datetime
    server_date: datetime


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object as listed; `size` in bytes."""

    key: str
    size: int
    last_modified: datetime


@dataclass(frozen=True, slots=True)
class Upload:
    """A multipart upload that was begun and neither completed nor aborted. `initiated`: set if it was listed."""

    key: str
    id: str
    initiated: datetime | None = field(default=None, compare=False)


class ObjectStore(Protocol):
    """One bucket, or one prefix of it; keys are relative. Every method may raise `StoreError`."""

    def get(self, key: str, *, max_bytes: int | None = None) -> StoredObject | None:
        """Return the object, or None if the store says that there is none: a 404, never a 403.

        Raise `TooLarge` if it has more than `max_bytes`.
        """
        ...

    def stream(self, key: str) -> Iterator[bytes] | None:
        """Return an object in blocks, as it may be too large for the memory, or None as `get` does. Each block may
        raise `StoreError`.
        """
        ...

    def create(self, key: str, body: bytes, *, tag: str = "") -> str:
        """Write the object if there is none; return its ETag; raise `PreconditionFailed` if another writer's is there.
        `tag`: `name=value`, the object's only tag.
        """
        ...

    def replace(self, key: str, body: bytes, *, etag: str, tag: str = "") -> str:
        """Write the object if it still has `etag`; return the new ETag; raise `PreconditionFailed` otherwise.

        The object loses its old tag.
        """
        ...

    def check_conditions(self, key: str, body: bytes) -> None:
        """Raise `UnsupportedError` unless the store keeps the conditions of `create` and `replace`.

        `key`: an object that is there with `body`, and stays so. A store that is known to keep them sends no request.
        """
        ...

    def put(self, key: str, body: bytes) -> str:
        """Write the object, over any other; return its ETag."""
        ...

    def delete(self, key: str) -> None:
        """Delete the object; it is no error if there is none."""
        ...

    def delete_all(self, keys: Sequence[str]) -> None:
        """Delete a batch of objects. After an error some of them may be gone."""
        ...

    def list(self, prefix: str, *, start_after: str = "", at_once: int = PAGE) -> Iterator[ListedObject]:
        """List the objects whose key begins with `prefix` and sorts after `start_after`, in key order.

        `at_once`: the most keys of one request. It takes a server as long as it has keys to return.
        """
        ...

    def uploads(self, prefix: str) -> Iterator[Upload]:
        """List the unfinished multipart uploads of keys that begin with `prefix`."""
        ...

    def abort(self, upload: Upload) -> None:
        """Abort an unfinished upload; it is no error if there is none."""
        ...

    def uri(self, key: str) -> str:
        """Return the `s3://` URI of a key, for messages and documents."""
        ...


def is_there(store: ObjectStore, key: str) -> bool:
    """Return whether the object exists, without reading it."""
    first = next(iter(store.list(key, at_once=1)), None)
    return first is not None and first.key == key


def batches(keys: Iterable[str]) -> Iterator[Sequence[str]]:
    """Split keys into batches for `delete_all` while they are listed, so that millions of names are never in memory.
    The caller can check its time between two batches. A key that needs a request of its own is a batch.
    """
    batch: list[str] = []
    for key in keys:
        if not key.isprintable():
            yield [key]
            continue
        batch.append(key)
        if len(batch) == PAGE:
            yield batch
            batch = []
    if batch:
        yield batch


def paced(entries: Iterable[_T], check_time: Callable[[], None]) -> Iterator[_T]:
    """Yield what a store lists, and call `check_time` once for each page."""
    for number, entry in enumerate(entries, 1):
        if number % PAGE == 0:
            check_time()
        yield entry
