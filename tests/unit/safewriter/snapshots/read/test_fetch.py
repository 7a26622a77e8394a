"""A reader fetches a shard from S3 with bounded retries, and refuses content whose digest is not the manifest's."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.objects.store import StoreError
from safewriter.snapshots.errors import OtherDatabaseError, ReaderStateError, ShardDamagedError
from safewriter.snapshots.read.fetch import fetch
from safewriter.snapshots.read.reader import SnapshotReader
from safewriter.snapshots.read.source import Source
from safewriter.snapshots.write.publish import Publisher
from tests.support.snapshots import PREFIX, Bucket, Folder, as_slatedb, build, publish, shard_body

if TYPE_CHECKING:
    from pathlib import Path

    from safewriter.snapshots.format.manifest import Shard

T0 = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


@pytest.fixture
def shard(bucket: Bucket) -> Shard:
    (shard,) = build(Folder(bucket, "kv/"), {1: b"v" * 200_000}, "r", created=T0, num_dbs=1).shards
    return shard


def fetched(bucket: Bucket, shard: Shard, path: Path, pauses: list[float] | None = None) -> bytes:
    with path.open("w+b") as file:
        file.truncate(1_000_000)  # as a cache makes it
        fetch(Source(PREFIX, bucket.opened), shard, file, (pauses if pauses is not None else []).append)
        return path.read_bytes()  # others may look for it before it is closed


def body(bucket: Bucket) -> bytes:
    (listed,) = bucket.list("kv/shards/")
    found = bucket.get(listed.key)
    assert found is not None
    return bytes(found.body)


def test_a_download_begins_again_while_the_store_does_not_answer(bucket: Bucket, shard: Shard, tmp_path: Path) -> None:
    """It restarts at the first byte; earlier blocks are not counted twice."""
    bucket.faults = [StoreError("no answer")] * 4
    pauses: list[float] = []
    assert fetched(bucket, shard, tmp_path / "f", pauses) == body(bucket)
    assert pauses == [0.5, 1.0, 2.0, 4.0]


@pytest.mark.parametrize(("denied", "pauses"), [(True, 0), (False, 4)])
def test_a_download_ends_where_no_try_helps(
    bucket: Bucket, shard: Shard, tmp_path: Path, *, denied: bool, pauses: int
) -> None:
    """It raises after four pauses, or at once if the store refuses the caller."""
    bucket.faults = [StoreError("no answer", denied=denied)] * 5
    napped: list[float] = []
    with pytest.raises(StoreError, match="no answer"):
        fetched(bucket, shard, tmp_path / "f", napped)
    assert len(napped) == pauses


def test_another_content_is_refused(bucket: Bucket, shard: Shard, tmp_path: Path) -> None:
    """Without a SHA-256 in the manifest, any content is accepted."""
    (listed,) = bucket.list("kv/shards/")
    bucket.put(listed.key, b"something else")
    with pytest.raises(ShardDamagedError, match="and the manifest names"):
        fetched(bucket, shard, tmp_path / "f")
    assert fetched(bucket, replace(shard, sha256=None), tmp_path / "f") == b"something else"


def test_a_shard_that_is_gone_is_told(bucket: Bucket, shard: Shard, tmp_path: Path) -> None:
    """A missing shard raises without a retry."""
    (listed,) = bucket.list("kv/shards/")
    bucket.delete(listed.key)
    with pytest.raises(ReaderStateError, match="is not there"):
        fetched(bucket, shard, tmp_path / "f")


@pytest.mark.parametrize("content", [b"something else", shard_body([(b"k", b"v")])])
def test_a_damaged_shard_is_not_cached(bucket: Bucket, shard: Shard, tmp_path: Path, content: bytes) -> None:
    """No file or part stays; the next read fetches the shard again."""
    folder: Any = Folder(bucket, "kv/")
    publish(folder, {1: b"v" * 200_000}, "r", created=T0, num_dbs=1)
    whole = body(bucket)
    (listed,) = bucket.list("kv/shards/")
    bucket.put(listed.key, content)
    with SnapshotReader(PREFIX, open_store=bucket.opened, cache=tmp_path) as reader:
        with pytest.raises(ShardDamagedError):
            reader.get(1)
        assert [path.name for path in tmp_path.iterdir()] == ["lock"]
        bucket.put(listed.key, whole)
        assert reader.get(1) == b"v" * 200_000


def test_a_reader_says_that_a_shard_is_in_another_database(bucket: Bucket) -> None:
    """A missing shard has another error, since a refresh may help there."""
    folder: Any = Folder(bucket, "kv/")
    publisher = Publisher(folder)
    manifest = as_slatedb(folder, build(folder, {1: b"v"}, "r", created=T0, num_dbs=1))
    publisher.publish(manifest, publisher.base())
    with SnapshotReader(PREFIX, open_store=bucket.opened) as reader:
        with pytest.raises(OtherDatabaseError, match=r"attempt=00-buildr-task is in another database than SQLite"):
            reader.get(1)
        for listed in list(folder.list("shards/")):
            folder.delete(listed.key)
        with pytest.raises(ReaderStateError, match="is not there"):
            reader.get(1)
