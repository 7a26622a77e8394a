"""One snapshot as a reader has it: it never changes, and all its readings see the same rows."""

from __future__ import annotations

import sqlite3
import struct
from typing import TYPE_CHECKING, Any, Final

import xxhash

from safewriter.snapshots.errors import ManifestParseError
from safewriter.snapshots.format.encoding import KeyEncoding, encode
from safewriter.snapshots.read.shards import SELECT, Shards
from safewriter.snapshots.routing.routing import HashRouting, Routing, routing_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from safewriter.snapshots.format.encoding import Key
    from safewriter.snapshots.format.manifest import Manifest
    from safewriter.snapshots.read.cache import CacheFolder
    from safewriter.snapshots.read.source import Source

    Context = Mapping[str, object] | None
    Place = Callable[[Key, Context], tuple[int | None, bytes]]

__all__ = ["Snapshot"]

_MAX: Final = 2**63 - 1


class Snapshot:
    """A manifest that was read, and its shards."""

    __slots__ = ("_local", "_place", "_shards", "manifest", "ref", "routing")

    def __init__(self, ref: str, source: Source, cache: CacheFolder) -> None:
        self.ref = ref
        self.manifest: Manifest = source.manifest(ref)
        try:
            self.routing: Routing = routing_of(self.manifest.sharding, self.manifest.num_dbs)
        except ValueError as error:
            raise ManifestParseError(f"{ref} is no manifest that this code can read: {error}") from error
        self._place = _place(self.routing, self.manifest.key_encoding)
        self._shards = Shards({shard.db_id: shard for shard in self.manifest.shards}, source, cache)
        self._local: Any = self._shards.local

    def value(self, key: Key, context: Context) -> bytes | None:
        """Return the value of a key; None if there is none."""
        db_id, stored = self._place(key, context)
        try:
            shard = self._local.shards[db_id]
        except (AttributeError, KeyError):  # this thread's first reading of the shard, or a shard without rows
            opened = None if db_id is None else self._shards.open(db_id)
            if opened is None:
                return None
            shard = opened
        try:
            row = shard.execute(SELECT, (stored,)).fetchone()
        except sqlite3.DatabaseError as error:
            if len(stored) > shard.longest:
                return None  # SQLite does not take it; no key of this file is so long
            raise self._shards.damaged(shard.db_id, error) from error
        if row is None:
            return None
        value: bytes | None = row[0]
        if type(value) is not bytes and value is not None:  # other programs let a value be null
            raise self._shards.damaged(shard.db_id, "a value is not bytes")
        return value


def _place(routing: Routing, encoding: KeyEncoding) -> Place:
    """Return the function that gives a key its shard and its stored bytes."""

    def place(key: Key, context: Context) -> tuple[int | None, bytes]:
        return routing.route(key, context), encode(key, encoding)

    if not isinstance(routing, HashRouting) or encoding is not KeyEncoding.U64BE:
        return place
    num_dbs, digest, packed = routing.num_dbs, xxhash.xxh3_64_intdigest, struct.Struct(">Q").pack

    def place_integer(key: Key, context: Context) -> tuple[int | None, bytes]:
        """Do the same for most keys, without calls; the other one names what is wrong with a key."""
        if type(key) is int and 0 <= key <= _MAX:
            stored = packed(key)
            return digest(stored[::-1]) % num_dbs, stored
        return place(key, context)

    return place_integer
