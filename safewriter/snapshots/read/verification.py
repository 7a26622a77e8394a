"""Check a snapshot in the store against its manifest, shard by shard, with one file on this machine at a time."""

from __future__ import annotations

import itertools
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from safewriter.snapshots.errors import (
    KeyRangeError,
    ManifestParseError,
    OtherDatabaseError,
    ReaderStateError,
    ShardDamagedError,
)
from safewriter.snapshots.format import database
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.format.shard_file import TABLES
from safewriter.snapshots.read.cache import usable
from safewriter.snapshots.read.fetch import fetch
from safewriter.snapshots.read.source import url_of
from safewriter.snapshots.routing.routing import routing_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from safewriter.snapshots.format.encoding import Key
    from safewriter.snapshots.format.manifest import Manifest, Shard
    from safewriter.snapshots.read.source import Source
    from safewriter.snapshots.routing.routing import Routing

__all__ = ["ShardFault", "Verification", "verify"]

_INTEGERS: Final = (KeyEncoding.U64BE, KeyEncoding.U32BE)


@dataclass(frozen=True, slots=True)
class ShardFault:
    """A difference between a shard and the manifest."""

    db_id: int
    db_url: str
    what: str


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification. `keys`: how many keys were routed again; None if the rule also needs other columns.
    `unread`: how many shards are in a database other than SQLite, of which only the objects' sizes were checked.
    """

    manifest_ref: str
    shards: int
    rows: int
    keys: int | None
    unread: int
    faults: tuple[ShardFault, ...]

    @property
    def is_sound(self) -> bool:
        """Whether no shard differs from the manifest."""
        return not self.faults


def verify(
    source: Source, ref: str | None = None, *, keys_max: int | None = None, done: Callable[[int], None] = lambda _: None
) -> Verification:
    """Fetch each shard of a manifest, or of the current one, and check its size, content, rows and keys.

    `keys_max`: how many keys of each shard to route again, evenly spread; None: all of them. `done` gets the number of
    shards checked so far. Raises `ManifestParseError` if the manifest cannot be read, `ReaderStateError` without
    `_CURRENT`, or if a shard does not fit on this machine, `StoreError` if the store does not answer.
    """
    named = source.named(ref)
    ref, manifest = named.ref, source.manifest(named.ref, named.sha256)
    try:
        routing = routing_of(manifest.sharding, manifest.num_dbs)
    except ValueError as error:
        raise ManifestParseError(f"{ref} is no manifest that this code can read: {error}") from error
    faults: list[ShardFault] = []
    rows = keys = unread = 0
    with usable(f"a shard of {ref}"), tempfile.TemporaryDirectory(prefix="soal-verify-") as folder:
        path = Path(folder) / "shard.db"
        for number, shard in enumerate(manifest.shards, start=1):
            check = _Check(manifest, shard, routing, keys_max)
            faults += [ShardFault(shard.db_id, shard.db_url, fault) for fault in check.faults(source, path)]
            rows, keys, unread = rows + check.rows, keys + check.keys, unread + check.is_unread
            done(number)
    is_by_key = not routing.columns
    return Verification(ref, len(manifest.shards), rows, keys if is_by_key else None, unread, tuple(faults))


@dataclass(slots=True)
class _Check:
    manifest: Manifest
    shard: Shard
    routing: Routing
    keys_max: int | None
    rows: int = 0
    keys: int = 0
    is_unread: bool = False

    def faults(self, source: Source, path: Path) -> Iterator[str]:
        with path.open("w+b") as file:
            try:
                fetch(source, self.shard, file)
            except ReaderStateError as error:
                if isinstance(error.__cause__, OSError):
                    raise  # it is this machine's, and says nothing about the shard
                yield f"{url_of(self.shard)} is not there"
                return
            except OtherDatabaseError:
                self.is_unread = True
                yield from source.damage([self.shard])
                return
            except ShardDamagedError as error:
                yield str(error)
        size = path.stat().st_size
        if size != self.shard.db_bytes:
            yield f"{url_of(self.shard)} has {size} bytes, and the manifest names {self.shard.db_bytes}"
        try:
            with closing(database.of_file(path, TABLES)) as connection:
                yield from self._in_file(connection)
        except sqlite3.Error as error:
            yield f"SQLite cannot read it: {error}"

    def _in_file(self, connection: sqlite3.Connection) -> Iterator[str]:
        damage = database.damage(connection)
        if damage is not None:
            yield f"SQLite finds it damaged: {damage}"
            return
        (self.rows,) = connection.execute("SELECT count(*) FROM kv").fetchone()
        if self.rows != self.shard.row_count:
            yield f"it has {self.rows} rows, and the manifest names {self.shard.row_count}"
        if not self.routing.columns:
            yield from self._in_keys(connection)

    def _in_keys(self, connection: sqlite3.Connection) -> Iterator[str]:
        """Yield a problem if keys belong to another shard: their number, and the first one."""
        step = 1 if self.keys_max is None else max(1, -(-self.rows // max(1, self.keys_max)))
        strays, first = 0, b""
        for (stored,) in itertools.islice(connection.execute("SELECT k FROM kv"), 0, None, step):
            self.keys += 1
            if self._home(stored) != self.shard.db_id:
                strays, first = strays + 1, first or (stored if isinstance(stored, bytes) else repr(stored).encode())
        if strays:
            yield (
                f"{strays} keys belong to another shard, or can be no keys of this snapshot; the first one is"
                f" {first.hex()} as stored"
            )

    def _home(self, stored: object) -> int | None:
        if not isinstance(stored, bytes):
            return None
        try:
            return self.routing.route(_key(stored, self.manifest.key_encoding))
        except KeyRangeError:
            return None


def _key(stored: bytes, encoding: KeyEncoding) -> Key:
    """Return a stored key in the type for routing. Texts stay bytes: both are the same key, and not all are UTF-8."""
    return int.from_bytes(stored, "big") if encoding in _INTEGERS else stored
