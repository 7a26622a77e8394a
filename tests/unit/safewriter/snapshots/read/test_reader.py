from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.snapshots.errors import ManifestParseError, ReaderStateError
from safewriter.snapshots.format.current import CURRENT
from safewriter.snapshots.format.encoding import encode
from safewriter.snapshots.read.reader import SnapshotReader
from safewriter.snapshots.routing.hashing import digest
from safewriter.snapshots.write.publish import Publisher
from tests.support.memory_store import MemoryObjectStore
from tests.unit.safewriter.snapshots.format.test_manifest import MANIFEST, SHARD

if TYPE_CHECKING:
    from safewriter.objects.location import Location


class Bucket(MemoryObjectStore):
    """Notes what is fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def get(self, key: str) -> Any:
        self.fetched.append(key)
        return super().get(key)


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


def publish(bucket: Bucket, rows: dict[int, bytes], run: str = "r") -> None:
    shards = []
    for db_id in sorted({digest(key) % 8 for key in rows}):
        with closing(sqlite3.connect(":memory:")) as shard:
            shard.execute("CREATE TABLE kv (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID")
            own = (key for key in rows if digest(key) % 8 == db_id)
            of_shard = [(encode(key, MANIFEST.key_encoding), rows[key]) for key in own]
            shard.executemany("INSERT INTO kv VALUES (?, ?)", of_shard)
            shard.commit()
            bucket.put(f"{run}/{db_id}/shard.db", shard.serialize())
        named = replace(SHARD, db_id=db_id, db_url=f"s3://memory/{run}/{db_id}", sha256=f"{run}-{db_id}")
        shards.append(named)
    publisher = Publisher(bucket)
    publisher.publish(replace(MANIFEST, run_id=run, shards=tuple(shards)), publisher.base())


def reader(bucket: Bucket) -> SnapshotReader:
    def opened(_: Location) -> Bucket:
        return bucket

    return SnapshotReader("s3://memory/snapshot", open_store=opened)


def test_values_are_found_by_their_keys(bucket: Bucket) -> None:
    """A key that is not there has none, whether or not its shard has rows; the order of the keys is kept."""
    publish(bucket, {1: b"one", 2: b"two"})
    with reader(bucket) as one:
        assert one.get(1) == b"one"
        assert one.get(3) is None
        assert list(one.multi_get([2, 5, 1]).items()) == [(2, b"two"), (5, None), (1, b"one")]
        assert [one.get(key) for key in range(100, 200)] == [None] * 100
        assert one.route(1) == digest(1) % 8


def test_a_shard_is_fetched_when_it_is_asked_for_and_once(bucket: Bucket) -> None:
    """To open a snapshot fetches no shard."""
    publish(bucket, {1: b"one", 2: b"two"})
    with reader(bucket) as one:
        assert not [key for key in bucket.fetched if key.endswith("shard.db")]
        for _ in range(3):
            one.get(1)
        assert [key for key in bucket.fetched if key.endswith("shard.db")] == [f"r/{digest(1) % 8}/shard.db"]


def test_a_reader_stays_with_its_snapshot_until_it_refreshes(bucket: Bucket) -> None:
    """It tells whether there was another one."""
    publish(bucket, {1: b"old"}, "first")
    with reader(bucket) as one:
        publish(bucket, {1: b"new"}, "second")
        assert one.get(1) == b"old"
        assert one.refresh()
        assert (one.get(1), one.refresh()) == (b"new", False)
        assert one.manifest.run_id == "second"
        assert "_run_id=second/" in one.manifest_ref


def test_without_a_snapshot_there_is_nothing_to_read(bucket: Bucket) -> None:
    """Nor with a pointer to a manifest that is gone, nor without a shard."""
    with pytest.raises(ReaderStateError, match="nothing was published yet"):
        reader(bucket)
    publish(bucket, {1: b"one"})
    with reader(bucket) as one:
        bucket.delete(f"r/{digest(1) % 8}/shard.db")
        with pytest.raises(ReaderStateError, match=r"shard\.db is not there"):
            one.get(1)
    current = bucket.get(CURRENT)
    assert current is not None
    for listed in list(bucket.list("manifests/")):
        bucket.delete(listed.key)
    with pytest.raises(ManifestParseError, match="is not there"):
        reader(bucket)
