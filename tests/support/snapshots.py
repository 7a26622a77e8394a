"""Small snapshots without Spark, in a store in memory."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from safewriter.objects.store import PAGE
from safewriter.snapshots.format.encoding import Key, KeyEncoding, encode
from safewriter.snapshots.format.manifest import Manifest, Shard
from safewriter.snapshots.routing.hashing import digest
from safewriter.snapshots.write.publish import Publisher
from tests.support.memory_store import MemoryObjectStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from safewriter.objects.location import Location
    from safewriter.objects.store import ObjectStore

__all__ = ["PREFIX", "Bucket", "Folder", "as_slatedb", "build", "publish", "shard_body"]

PREFIX = "s3://memory/kv"


class Bucket(MemoryObjectStore):
    """Records the reads; `faults` are raised by the next streams, before their first block or after it."""

    def __init__(self, **told: Any) -> None:
        super().__init__(**told)
        self.read: list[str] = []
        self.faults: list[Exception] = []

    def get(self, key: str, *, max_bytes: int | None = None) -> Any:
        self.read.append(key)
        return super().get(key, max_bytes=max_bytes)

    def stream(self, key: str) -> Iterator[bytes] | None:
        blocks = super().stream(key)
        return None if blocks is None else self._faulty(blocks)

    def _faulty(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        for block in blocks:
            yield block
            if self.faults:
                raise self.faults.pop(0)

    def opened(self, where: Location) -> Any:
        """Open the bucket, or the snapshots' folder in it."""
        return Folder(self, f"{where.key}/") if where.key else self

    def shards_read(self) -> list[str]:
        """Return the shards read so far."""
        return [key for key in self.read if key.endswith("shard.db")]


class Folder:
    """A prefix of a store."""

    def __init__(self, below: MemoryObjectStore, prefix: str) -> None:
        self.below, self._prefix = below, prefix

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.below, name)
        return lambda key, *rest, **more: method(self._prefix + key, *rest, **more)

    def delete_all(self, keys: Sequence[str]) -> None:
        self.below.delete_all([self._prefix + key for key in keys])

    def list(self, prefix: str, *, start_after: str = "", at_once: int = PAGE) -> Iterator[Any]:
        for one in self.below.list(self._prefix + prefix, at_once=at_once):
            yield replace(one, key=one.key.removeprefix(self._prefix))

    def uploads(self, prefix: str) -> Iterator[Any]:
        for one in self.below.uploads(self._prefix + prefix):
            yield replace(one, key=one.key.removeprefix(self._prefix))

    def abort(self, upload: Any) -> None:
        self.below.abort(replace(upload, key=self._prefix + upload.key))


def shard_body(rows: Iterable[tuple[bytes, bytes]]) -> bytes:
    with closing(sqlite3.connect(":memory:")) as shard:
        shard.execute("CREATE TABLE kv (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID")
        shard.executemany("INSERT INTO kv VALUES (?, ?)", rows)
        shard.commit()
        return shard.serialize()


def build(
    store: ObjectStore,
    rows: Mapping[Any, bytes],
    run: str,
    *,
    created: datetime,
    num_dbs: int = 8,
    encoding: KeyEncoding = KeyEncoding.U64BE,
    shard_prefix: str = "shards",
) -> Manifest:
    """Write the shards of a snapshot, and return its manifest, which is not stored yet."""
    shards: list[Shard] = []
    homes: dict[int, list[Key]] = {}
    for key in rows:
        homes.setdefault(digest(key) % num_dbs, []).append(key)
    for db_id, keys in sorted(homes.items()):
        body = shard_body((encode(key, encoding), rows[key]) for key in keys)
        folder = f"{shard_prefix}/run_id={run}/db={db_id:05d}/attempt=00-build{run}-task"
        store.put(f"{folder}/shard.db", body)
        shards.append(
            Shard(
                db_id=db_id,
                db_url=store.uri(folder),
                attempt=0,
                row_count=len(keys),
                db_bytes=len(body),
                min_key=None,
                max_key=None,
                checkpoint_id=f"{run}-{db_id}",
                writer_info={},
                sha256=hashlib.sha256(body).hexdigest(),
            )
        )
    return Manifest(
        run_id=run,
        created_at=created.isoformat(),
        num_dbs=num_dbs,
        s3_prefix=PREFIX,
        key_col="id",
        db_path_template="db={db_id:05d}",
        shard_prefix=shard_prefix,
        key_encoding=encoding,
        sharding={"strategy": "hash", "hash_algorithm": "xxh3_64"},
        shards=tuple(shards),
    )


def as_slatedb(store: ObjectStore, manifest: Manifest) -> Manifest:
    """Put objects at the shards' paths, named as by SlateDB: 1,030 bytes per shard, not readable."""
    for shard in manifest.shards:
        folder = shard.db_url.removeprefix(store.uri(""))
        store.delete(f"{folder}/shard.db")
        store.put(f"{folder}/manifest/00000000000000000001.manifest", b"m" * 30)
        store.put(f"{folder}/compacted/01M83N9Q7Y4Q0VMHNHAN531BHN.sst", b"s" * 1000)
    return replace(manifest, shards=tuple(replace(one, db_bytes=1030, sha256=None) for one in manifest.shards))


def publish(store: Any, rows: Mapping[Any, bytes], run: str, *, created: datetime, **how: Any) -> str:
    """Build a snapshot, make it current, and return its manifest's location."""
    publisher = Publisher(store, sleep=lambda _: None, now=lambda: created)
    return publisher.publish(build(store, rows, run, created=created, **how), publisher.base())
