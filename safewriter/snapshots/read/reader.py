"""Read a published snapshot by key. Safe for threads; shards are fetched when they are first asked for."""

from __future__ import annotations

import sqlite3
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from safewriter.objects.location import Location
from safewriter.snapshots.errors import ManifestParseError, ReaderStateError
from safewriter.snapshots.format.current import CURRENT, Current
from safewriter.snapshots.format.encoding import encode
from safewriter.snapshots.format.manifest import Manifest
from safewriter.snapshots.format.shard_file import FILE_NAME
from safewriter.snapshots.routing.routing import Routing, routing_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from safewriter.objects.store import ObjectStore
    from safewriter.snapshots.format.encoding import Key
    from safewriter.snapshots.format.manifest import Shard

__all__ = ["SnapshotReader"]


@dataclass(frozen=True, slots=True)
class _State:
    ref: str
    manifest: Manifest
    routing: Routing
    shards: dict[int, Shard]


class SnapshotReader:
    """Reads what `_CURRENT` points to. `open_store` opens a bucket or prefix by its location."""

    def __init__(
        self, s3_prefix: str, *, open_store: Callable[[Location], ObjectStore] | None = None, cache: Path | None = None
    ) -> None:
        if open_store is None:
            from safewriter.objects import s3

            open_store = s3.open_store
        self._open_store = open_store
        self._store = open_store(Location.parse(s3_prefix))
        self._state = self._read()
        self._folder = tempfile.TemporaryDirectory(prefix="soal-snapshot-") if cache is None else None
        self._cache = Path(self._folder.name) if self._folder is not None else cache or Path()
        self._guard = threading.Lock()
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def manifest(self) -> Manifest:
        """The snapshot that is read."""
        return self._state.manifest

    @property
    def manifest_ref(self) -> str:
        """Where its manifest is."""
        return self._state.ref

    def get(self, key: Key, *, routing_context: Mapping[str, object] | None = None) -> bytes | None:
        """Return the value of a key; None if the snapshot has no such key.

        `routing_context`: the row's values of the other columns that decide on its shard, where there are any.
        """
        return self._value(self._state, key, routing_context)

    def multi_get(
        self, keys: Iterable[Key], *, routing_context: Mapping[str, object] | None = None
    ) -> dict[Key, bytes | None]:
        """Return the values of keys, in their order, all of one snapshot."""
        state = self._state
        return {key: self._value(state, key, routing_context) for key in keys}

    def route(self, key: Key, *, routing_context: Mapping[str, object] | None = None) -> int | None:
        """Return the shard that a key belongs to; None if no shard can have it."""
        return self._state.routing.route(key, routing_context)

    def refresh(self) -> bool:
        """Read `_CURRENT` again; return whether another snapshot is read from now on."""
        state = self._read()
        changed, self._state = state.ref != self._state.ref, state
        return changed

    def close(self) -> None:
        """Close all shards, and remove them if the cache is this reader's own."""
        with self._guard:
            for connection in self._connections:
                connection.close()
            self._connections.clear()
        if self._folder is not None:
            self._folder.cleanup()

    def _read(self) -> _State:
        found = self._store.get(CURRENT)
        ref = None if found is None else Current.decode(found.body, self._store.uri(CURRENT)).manifest_ref
        if ref is None:
            raise ReaderStateError(f"{self._store.uri(CURRENT)} points to no snapshot: nothing was published yet")
        where = Location.parse(ref)
        body = self._open_store(Location(where.bucket, "")).get(where.key)
        if body is None:
            raise ManifestParseError(f"{ref}, to which {self._store.uri(CURRENT)} points, is not there")
        manifest = Manifest.decode(body.body, ref)
        try:
            routing = routing_of(manifest.sharding, manifest.num_dbs)
        except ValueError as error:
            raise ManifestParseError(f"{ref} is no manifest that this code can read: {error}") from error
        return _State(ref, manifest, routing, {shard.db_id: shard for shard in manifest.shards})

    def _value(self, state: _State, key: Key, context: Mapping[str, object] | None) -> bytes | None:
        db_id = state.routing.route(key, context)
        shard = None if db_id is None else state.shards.get(db_id)
        if shard is None:
            return None
        stored = encode(key, state.manifest.key_encoding)
        row = self._connection(shard).execute("SELECT v FROM kv WHERE k = ?", (stored,)).fetchone()
        return None if row is None else bytes(row[0])

    def _connection(self, shard: Shard) -> sqlite3.Connection:
        """Return this thread's connection with a shard."""
        open_shards: dict[str, sqlite3.Connection] | None = getattr(self._local, "connections", None)
        if open_shards is None:
            open_shards = self._local.connections = {}
        connection = open_shards.get(shard.db_url)
        if connection is None:
            uri = f"file:{self._file(shard)}?mode=ro&immutable=1"
            connection = sqlite3.connect(uri, uri=True, check_same_thread=False)  # another thread may close it
            open_shards[shard.db_url] = connection
            with self._guard:
                self._connections.append(connection)
        return connection

    def _file(self, shard: Shard) -> Path:
        path = self._cache / f"{shard.sha256 or shard.checkpoint_id}.db"
        with self._guard:
            if not path.exists():
                where = Location.parse(f"{shard.db_url}/{FILE_NAME}")
                found = self._open_store(Location(where.bucket, "")).get(where.key)
                if found is None:
                    raise ReaderStateError(f"{shard.db_url}/{FILE_NAME} is not there; refresh(), or check the snapshot")
                part = path.with_suffix(".part")
                part.write_bytes(found.body)
                part.rename(path)
        return path
