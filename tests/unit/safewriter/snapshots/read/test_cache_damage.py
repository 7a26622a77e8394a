"""A reader of snapshots throws away a cached shard that is damaged or has disappeared, and fetches it again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.snapshots.errors import ShardDamagedError
from safewriter.snapshots.read.reader import SnapshotReader
from safewriter.snapshots.write.publish import Publisher
from tests.support.snapshots import PREFIX, Bucket, Folder, build, publish
from tests.unit.safewriter.snapshots.read.test_cache import names

if TYPE_CHECKING:
    from pathlib import Path

T0 = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


def test_a_file_that_is_no_shard_is_thrown_away(bucket: Bucket, tmp_path: Path) -> None:
    """Without a SHA-256 in the manifest, the fetch cannot check it."""
    folder: Any = Folder(bucket, "kv/")
    manifest = build(folder, {1: b"v"}, "r", created=T0, num_dbs=1)
    (shard,) = manifest.shards
    publisher = Publisher(folder)
    publisher.publish(replace(manifest, shards=(replace(shard, sha256=None),)), publisher.base())
    (listed,) = bucket.list("kv/shards/")
    whole = bucket.get(listed.key).body
    bucket.put(listed.key, b"x" * 5000)
    with SnapshotReader(PREFIX, open_store=bucket.opened, cache=tmp_path) as one:
        with pytest.raises(ShardDamagedError, match="no shard that this code can read"):
            one.get(1)
        assert names(tmp_path) == []
        bucket.put(listed.key, whole)
        assert one.get(1) == b"v"


def damage(folder: Path, first: int) -> None:
    """Write zeros over all pages but the first ones, as a failing disk does: SQLite opens the file without an error."""
    (path,) = folder.glob("*.db")
    body = path.read_bytes()
    path.write_bytes(body[: first * 4096] + bytes(len(body) - first * 4096))


def test_a_cached_file_that_lost_pages_is_fetched_again(bucket: Bucket, tmp_path: Path) -> None:
    """A new reader finds the damage, and returns no value of the file."""
    publish(Folder(bucket, "kv/"), {1: b"A" * 50_000}, "r", created=T0, num_dbs=1)
    with SnapshotReader(PREFIX, open_store=bucket.opened, cache=tmp_path) as one:
        one.get(1)
    damage(tmp_path, 5)
    with SnapshotReader(PREFIX, open_store=bucket.opened, cache=tmp_path) as other:
        assert other.get(1) == b"A" * 50_000


def test_a_shard_that_cannot_be_read_any_more_is_thrown_away(bucket: Bucket, tmp_path: Path) -> None:
    """The read raises, and the next one fetches the shard again."""
    rows = dict.fromkeys(range(2000), b"x" * 100)
    publish(Folder(bucket, "kv/"), rows, "r", created=T0, num_dbs=1)
    with SnapshotReader(PREFIX, open_store=bucket.opened, cache=tmp_path) as one:
        one.get(1)
        damage(tmp_path, 5)
        with pytest.raises(ShardDamagedError, match="The next reading fetches it again"):
            one.multi_get(rows)
        assert names(tmp_path) == []
        assert one.multi_get(rows) == rows


@pytest.mark.parametrize("is_named", [True, False])
def test_a_shard_that_stays_damaged_is_fetched_once_a_minute(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_named: bool
) -> None:
    """The first read fetches it, the second one again, and later ones raise the same error, whichever check finds it:
    the manifest's digest, or SQLite.
    """
    folder: Any = Folder(bucket, "kv/")
    manifest = build(folder, {1: b"v"}, "r", created=T0, num_dbs=1)
    (shard,) = manifest.shards
    publisher = Publisher(folder)
    publisher.publish(
        replace(manifest, shards=(replace(shard, sha256=shard.sha256 if is_named else None),)), publisher.base()
    )
    (listed,) = bucket.list("kv/shards/")
    whole = bucket.get(listed.key).body
    bucket.put(listed.key, b"x" * len(whole))
    fetched: list[str] = []
    stream = bucket.stream

    def noted(key: str) -> Any:
        fetched.append(key)
        return stream(key)

    monkeypatch.setattr(bucket, "stream", noted)
    with SnapshotReader(PREFIX, open_store=bucket.opened, cache=tmp_path) as one:
        now_s = 0.0
        one._opened()._shards._clock = lambda: now_s
        for fetches in (1, 2, 2, 2):
            with pytest.raises(ShardDamagedError, match="and the manifest names" if is_named else "no shard that"):
                one.get(1)
            assert len(fetched) == fetches
        now_s = 60.0
        bucket.put(listed.key, whole)
        assert one.get(1) == b"v"


def test_a_file_that_disappears_is_fetched_again(bucket: Bucket, tmp_path: Path) -> None:
    """The cache was emptied: threads with the open file keep it; another thread gets an error, and then a new file."""
    publish(Folder(bucket, "kv/"), {1: b"v"}, "r", created=T0)
    with SnapshotReader(PREFIX, open_store=bucket.opened, cache=tmp_path) as one, ThreadPoolExecutor(1) as pool:
        one.get(1)
        for path in tmp_path.glob("*.db"):
            path.unlink()
        assert one.get(1) == b"v"
        with pytest.raises(ShardDamagedError, match="No such file"):
            pool.submit(one.get, 1).result()
        assert pool.submit(one.get, 1).result() == b"v"
