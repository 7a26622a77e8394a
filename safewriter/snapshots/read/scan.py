"""Iterate over a snapshot by a range of keys: the shards, each sorted by key, merged."""

from __future__ import annotations

import heapq
import sqlite3
from typing import TYPE_CHECKING

from safewriter.snapshots.errors import KeyRangeError
from safewriter.snapshots.format.encoding import KeyEncoding, encode, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safewriter.snapshots.format.encoding import Key
    from safewriter.snapshots.format.manifest import Manifest, Shard
    from safewriter.snapshots.read.shards import Shards

__all__ = ["scan"]


def scan(manifest: Manifest, shards: Shards, start: Key | None, stop: Key | None) -> Iterator[tuple[Key, bytes | None]]:
    """Yield keys from `start` on and before `stop`, with their values, in the order of the stored keys.

    It has connections of its own, so another thread than the one that began may go on with it.
    """
    encoding = manifest.key_encoding
    first = None if start is None else encode(plain(start), encoding)
    last = None if stop is None else encode(plain(stop), encoding)
    wanted = (shard for shard in manifest.shards if _may_have(shard, encoding, first, last))
    # `merge` asks each shard for its first row: one that cannot be read ends the iteration before it begins.
    merged = heapq.merge(*(_rows(shards, shard.db_id, first, last) for shard in wanted), key=lambda row: row[0])
    return ((_key(stored, encoding), value) for stored, value in merged)


def _may_have(shard: Shard, encoding: KeyEncoding, first: bytes | None, last: bytes | None) -> bool:
    """Return whether a shard may have keys of the range, by its lowest and highest key in the manifest, if it says."""
    try:
        lowest, highest = (None if key is None else encode(key, encoding) for key in (shard.min_key, shard.max_key))
    except (KeyRangeError, UnicodeEncodeError):  # another writer's
        return True
    too_low = first is not None and highest is not None and highest < first
    too_high = last is not None and lowest is not None and lowest >= last
    return not (too_low or too_high)


def _rows(shards: Shards, db_id: int, first: bytes | None, last: bytes | None) -> Iterator[tuple[bytes, bytes | None]]:
    shard = shards.connect(db_id)
    if shard is None:
        return
    # SQLite takes no parameter that is longer than the file: such a bound is only compared here.
    bounds = {text: key for text, key in (("k >= ?", first), ("k < ?", last)) if key and len(key) <= shard.longest}
    where = f" WHERE {' AND '.join(bounds)}" if bounds else ""
    try:
        for key, value in shard.execute(f"SELECT k, v FROM kv{where} ORDER BY k", [*bounds.values()]):  # noqa: S608
            if type(key) is not bytes or (type(value) is not bytes and value is not None):
                raise shards.damaged(db_id, "a key or a value is not bytes")
            if last is not None and key >= last:
                return
            if first is None or key >= first:
                yield key, value
    except sqlite3.DatabaseError as error:
        raise shards.damaged(db_id, error) from error


def _key(stored: bytes, encoding: KeyEncoding) -> Key:
    """Return a stored key as `get` takes it; a text that is not UTF-8 stays bytes."""
    if encoding.limit is not None:
        return int.from_bytes(stored, "big")
    if encoding is KeyEncoding.RAW:
        return stored
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored
