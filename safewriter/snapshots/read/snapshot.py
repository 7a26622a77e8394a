"""One snapshot as a reader has it: it never changes, and all reads see the same rows."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from safewriter.snapshots.errors import ManifestParseError
from safewriter.snapshots.format.encoding import KEY_TYPES, encode, plain
from safewriter.snapshots.read.scan import scan
from safewriter.snapshots.read.shards import SELECT, Shards
from safewriter.snapshots.routing.routing import Routing, routing_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from safewriter.snapshots.format.current import ManifestAt
    from safewriter.snapshots.format.encoding import Key
    from safewriter.snapshots.format.manifest import Manifest
    from safewriter.snapshots.read.cache import CacheFolder
    from safewriter.snapshots.read.source import Source

    Context = Mapping[str, object] | None

__all__ = ["Snapshot"]


class Snapshot:
    """A snapshot's manifest, routing and shards."""

    __slots__ = ("_encoding", "_local", "_shards", "manifest", "ref", "routing")

    def __init__(
        self,
        named: ManifestAt,
        source: Source,
        cache: CacheFolder,
        fetched: Callable[[int], object] = lambda _: None,
    ) -> None:
        self.ref = ref = named.ref
        self.manifest: Manifest = source.manifest(ref, named.sha256)
        try:
            self.routing: Routing = routing_of(self.manifest.sharding, self.manifest.num_dbs)
        except ValueError as error:
            raise ManifestParseError(f"{ref} is no manifest that this code can read: {error}") from error
        self._encoding = self.manifest.key_encoding
        self._shards = Shards({shard.db_id: shard for shard in self.manifest.shards}, source, cache, fetched=fetched)
        self._local: Any = self._shards.local

    def shard_of(self, key: Key, context: Context) -> int | None:
        """Return the shard that a key belongs to; None if no shard can have it."""
        return self.routing.route(plain(key), context)

    def scan(self, start: Key | None, stop: Key | None) -> Iterator[tuple[Key, bytes | None]]:
        """Yield keys with values, by their range."""
        return scan(self.manifest, self._shards, start, stop)

    def value(self, key: Key, context: Context) -> bytes | None:
        """Return the value of a key; None if there is none."""
        if type(key) not in KEY_TYPES:
            key = plain(key)
        db_id, stored = self.routing.route(key, context), encode(key, self._encoding)
        try:
            shard = self._local.shards[db_id]
        except (AttributeError, KeyError):  # this thread's first read of the shard, or a shard without rows
            opened = None if db_id is None else self._shards.open(db_id)
            if opened is None:
                return None
            shard = opened
        try:
            row = shard.execute(SELECT, (stored,)).fetchone()
        except sqlite3.DatabaseError as error:
            if len(stored) > shard.longest:
                return None  # the parameter exceeds SQLite's limit, and so no key of this file is so long
            raise self._shards.damaged(shard.db_id, error) from error
        if row is None:
            return None
        value: bytes | None = row[0]
        if type(value) is not bytes and value is not None:  # other writers allow null values
            raise self._shards.damaged(shard.db_id, "a value is not bytes")
        return value
