"""Access to the snapshots of one prefix: `_CURRENT`, manifests, and the objects that manifests name."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from safewriter.objects.store import TooLarge
from safewriter.snapshots.errors import ManifestParseError, ReaderStateError
from safewriter.snapshots.format.current import CURRENT, CURRENT_MAX_BYTES, Current, ManifestAt
from safewriter.snapshots.format.manifest import MANIFEST_MAX_BYTES, Manifest
from safewriter.snapshots.format.places import prefix_of
from safewriter.snapshots.format.shard_file import FILE_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from safewriter.objects.location import Location
    from safewriter.objects.store import ObjectStore, StoredObject
    from safewriter.snapshots.format.manifest import Shard

    OpenStore = Callable[[Location], ObjectStore]

__all__ = ["Source", "is_other_database", "url_of"]


def url_of(shard: Shard) -> str:
    """Return the URL of a shard's file."""
    return f"{shard.db_url.rstrip('/')}/{FILE_NAME}"


def is_other_database(shard: Shard, objects: Mapping[str, int]) -> bool:
    """Return whether these objects of a shard are of a database other than SQLite; such a shard has no digest."""
    return bool(objects) and FILE_NAME not in objects and shard.sha256 is None


def _damage(shard: Shard, objects: Mapping[str, int]) -> str | None:
    if is_other_database(shard, objects):
        where, size = shard.db_url, sum(objects.values())
        is_whole = size >= shard.db_bytes  # SlateDB's readers add to it
    elif FILE_NAME not in objects:
        return f"{url_of(shard)} is not there"
    else:
        where, size = url_of(shard), objects[FILE_NAME]
        is_whole = size == shard.db_bytes
    return None if is_whole else f"{where} has {size} bytes, and the manifest names {shard.db_bytes}"


class Source:
    """One prefix of snapshots. `open_store` opens a bucket or prefix by its location; default: boto3."""

    def __init__(self, s3_prefix: str, open_store: OpenStore | None = None) -> None:
        if open_store is None:
            from safewriter.objects import s3

            open_store = s3.open_store
        self.open_store = open_store
        self.store = open_store(prefix_of(s3_prefix))

    def current(self) -> tuple[StoredObject, Current]:
        """Read `_CURRENT`. Raises `ReaderStateError` if there is none, `ManifestParseError` if it is damaged."""
        stored = self._read(CURRENT, CURRENT_MAX_BYTES)
        if stored is None:
            raise ReaderStateError(f"there is no {self.store.uri(CURRENT)}: nothing was published yet")
        return stored, Current.decode(stored.body, self.store.uri(CURRENT))

    def named(self, ref: str | None = None) -> ManifestAt:
        """Return a manifest as `_CURRENT` names it: the current one, or the given one, if need be without its digest.

        Raises as `current` does, and `ReaderStateError` if no manifest is current.
        """
        return self.named_in(self.current()[1], ref)

    def named_in(self, current: Current, ref: str | None = None) -> ManifestAt:
        """Return a manifest as `named` does, without a request."""
        ref = ref or current.manifest_ref
        if ref is None:
            raise ReaderStateError(f"{self.store.uri(CURRENT)} points to no snapshot: nothing was published yet")
        return ManifestAt(ref, current.sha256_of(ref))

    def manifest(self, ref: str, sha256: str | None = None) -> Manifest:
        """Read a manifest. Raises `ManifestParseError` if it is not there, not below the prefix, damaged, or has not
        the SHA-256 that `_CURRENT` names.
        """
        stored = self._read(self.key_of(ref), MANIFEST_MAX_BYTES)
        if stored is None:
            raise ManifestParseError(f"the manifest {ref} is not there")
        manifest = Manifest.decode(stored.body, ref)
        if sha256 not in (None, manifest.sha256):
            raise ManifestParseError(
                f"{ref} has the SHA-256 {manifest.sha256}, and {self.store.uri(CURRENT)} names {sha256}: somebody has"
                " changed the object. Go back to another snapshot, or build again"
            )
        return manifest

    def stream(self, url: str) -> Iterator[bytes] | None:
        """Return an object in blocks; None if it is not there."""
        return self.store.stream(self.key_of(url))

    def damage(self, shards: Iterable[Shard]) -> Iterator[str]:
        """Yield the problem of each shard that is missing or incomplete, by the sizes of its objects alone."""
        shards = tuple(shards)
        sizes = self._sizes([shard.db_url for shard in shards])
        return (damage for shard in shards if (damage := _damage(shard, sizes[shard.db_url])) is not None)

    def whole(self, shards: Iterable[Shard]) -> tuple[Shard, ...]:
        """Return the shards that `damage` would not yield."""
        shards = tuple(shards)
        sizes = self._sizes([shard.db_url for shard in shards])
        return tuple(shard for shard in shards if _damage(shard, sizes[shard.db_url]) is None)

    def objects_of(self, shard: Shard) -> Mapping[str, int]:
        """Return the sizes of a shard's objects, by their names below `db_url`."""
        return self._sizes([shard.db_url])[shard.db_url]

    def _sizes(self, folders: Iterable[str]) -> dict[str, dict[str, int]]:
        """Return the sizes of the objects below folders, by one listing of the folders' common prefix."""
        sizes: dict[str, dict[str, int]] = {folder: {} for folder in folders}
        keys = {f"{self.key_of(folder).rstrip('/')}/": folder for folder in sizes}
        if not keys:
            return sizes
        for entry in self.store.list(_common(list(keys))):
            key = entry.key
            while key and key not in keys:
                key = key[: key.rstrip("/").rfind("/") + 1]
            if key:
                sizes[keys[key]][entry.key.removeprefix(key)] = entry.size
        return sizes

    def _read(self, key: str, max_bytes: int) -> StoredObject | None:
        try:
            return self.store.get(key, max_bytes=max_bytes)
        except TooLarge as error:
            raise ManifestParseError(f"{error}. Go back to another snapshot, or build again") from error

    def key_of(self, url: str) -> str:
        """Return the key of an object that `_CURRENT`, a manifest or a caller names.

        Raises `ManifestParseError` unless it lies below the prefix, so that a forged manifest cannot lead elsewhere.
        """
        root = self.store.uri("")
        key = url.removeprefix(root)
        if not root.endswith("/") or key in (url, ""):
            raise ManifestParseError(
                f"{url} does not lie below {root}, the snapshots' prefix, and nothing else is read. Go back to another"
                " snapshot, or build again"
            )
        return key


def _common(keys: list[str]) -> str:
    """Return the common prefix of all keys."""
    first, last = min(keys), max(keys)
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return "".join(letter for letter, _ in same)
