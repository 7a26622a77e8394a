"""Where the snapshots of one prefix lie: the pointer, manifests, and the objects that manifests name."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING

from safewriter.objects.location import Location
from safewriter.snapshots.errors import ManifestParseError, ReaderStateError
from safewriter.snapshots.format.current import CURRENT, Current
from safewriter.snapshots.format.manifest import Manifest
from safewriter.snapshots.format.places import prefix_of
from safewriter.snapshots.format.shard_file import FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from safewriter.objects.store import StoredObject, StreamingStore
    from safewriter.snapshots.format.manifest import Shard

    OpenStore = Callable[[Location], StreamingStore]

__all__ = ["Source", "url_of"]


def url_of(shard: Shard) -> str:
    """Return the URL of a shard's file."""
    return f"{shard.db_url.rstrip('/')}/{FILE_NAME}"


class Source:
    """One prefix. `open_store` opens a bucket or prefix by its location; by default through boto3."""

    def __init__(self, s3_prefix: str, open_store: OpenStore | None = None) -> None:
        if open_store is None:
            from safewriter.objects import s3

            open_store = s3.open_store
        self.open_store = open_store
        self.store = open_store(prefix_of(s3_prefix))

    def current(self) -> tuple[StoredObject, Current]:
        """Read the pointer. Raises `ReaderStateError` if there is none, `ManifestParseError` if it is damaged."""
        found = self.store.get(CURRENT)
        if found is None:
            raise ReaderStateError(f"there is no {self.store.uri(CURRENT)}: nothing was published yet")
        return found, Current.decode(found.body, self.store.uri(CURRENT))

    def current_ref(self) -> str:
        """Return where the current manifest is. Raises as `current` does, also if nothing was published yet."""
        ref = self.current()[1].manifest_ref
        if ref is None:
            raise ReaderStateError(f"{self.store.uri(CURRENT)} points to no snapshot: nothing was published yet")
        return ref

    def manifest(self, ref: str) -> Manifest:
        """Read a manifest. Raises `ManifestParseError` if it is not there, or damaged."""
        store, key = self._opened(ref)
        found = store.get(key)
        if found is None:
            raise ManifestParseError(f"the manifest {ref} is not there")
        return Manifest.decode(found.body, ref)

    def stream(self, url: str) -> Iterator[bytes] | None:
        """Return an object in blocks; None if it is not there."""
        store, key = self._opened(url)
        return store.stream(key)

    def sizes(self, urls: Iterable[str]) -> dict[str, int]:
        """Return the sizes of those objects that are there, by one listing of what their keys have in common."""
        buckets: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for url in urls:
            where = _located(url)
            buckets[where.bucket][where.key] = url
        found: dict[str, int] = {}
        for bucket, keys in buckets.items():
            for listed in self.open_store(Location(bucket)).list(_common(list(keys))):
                if listed.key in keys:
                    found[keys[listed.key]] = listed.size
        return found

    def _opened(self, url: str) -> tuple[StreamingStore, str]:
        where = _located(url)
        return self.open_store(Location(where.bucket)), where.key


def _common(keys: list[str]) -> str:
    """Return what all keys begin with."""
    first, last = min(keys), max(keys)
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return "".join(one for one, _ in same)


def _located(url: str) -> Location:
    try:
        return Location.parse(url)
    except ValueError as error:
        raise ManifestParseError(f"a snapshot names an object that nobody can find: {error}") from None
