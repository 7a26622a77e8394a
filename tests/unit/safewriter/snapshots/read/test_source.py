"""The source of a snapshot checks by one listing that all shards' objects exist with their sizes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.snapshots.read.source import Source
from tests.support.snapshots import PREFIX, Bucket, Folder, as_slatedb, build

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.snapshots.format.manifest import Manifest


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


@pytest.fixture
def folder(bucket: Bucket) -> Any:
    return Folder(bucket, "kv/")


@pytest.fixture
def manifest(folder: Any) -> Manifest:
    return build(folder, dict.fromkeys(range(40), b"v"), "r", created=datetime(2026, 11, 20, tzinfo=UTC), num_dbs=4)


def key_of(manifest: Manifest, name: str) -> str:
    return f"{manifest.shards[2].db_url.removeprefix(PREFIX + '/')}/{name}"


def damage(bucket: Bucket, manifest: Manifest) -> list[str]:
    return list(Source(PREFIX, bucket.opened).damage(manifest.shards))


def test_all_shards_are_looked_at_by_one_listing(bucket: Bucket, folder: Any, manifest: Manifest) -> None:
    """Other objects beside the shards are ignored."""
    listings: list[str] = []
    listed = bucket.list

    def noted(prefix: str, **more: Any) -> object:
        listings.append(prefix)
        return listed(prefix, **more)

    bucket.list = noted  # type: ignore[method-assign, assignment]
    for name in ("shard.db2", "more/shard.db"):
        folder.put(key_of(manifest, name), b"more")
    folder.put("shards/run_id=r/db=00002/attempt=00-buildr-task2/shard.db", b"of another task")
    assert damage(bucket, manifest) == []
    assert listings == ["kv/shards/run_id=r/db=0000"]
    assert list(Source(PREFIX, bucket.opened).damage([])) == []


def test_a_file_is_there_with_its_size(bucket: Bucket, folder: Any, manifest: Manifest) -> None:
    """A missing file or another size is reported, even if there are other objects beside it."""
    url = manifest.shards[2].db_url
    folder.put(key_of(manifest, "shard.db"), b"longer than the manifest says" * 1000)
    assert damage(bucket, manifest) == [
        f"{url}/shard.db has 29000 bytes, and the manifest names {manifest.shards[2].db_bytes}"
    ]
    folder.delete(key_of(manifest, "shard.db"))
    assert damage(bucket, manifest) == [f"{url}/shard.db is not there"]
    folder.put(key_of(manifest, "wal/1.sst"), b"w" * 99_999)
    assert damage(bucket, manifest) == [f"{url}/shard.db is not there"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda folder, manifest: folder.put(key_of(manifest, "manifest/2.manifest"), b"of a reader"), []),
        (
            lambda folder, manifest: folder.put(key_of(manifest, "compacted/01M83N9Q7Y4Q0VMHNHAN531BHN.sst"), b"s"),
            ["task has 31 bytes, and the manifest names 1030"],
        ),
        (
            lambda folder, manifest: [
                folder.delete(listed.key) for listed in list(folder.list("shards/run_id=r/db=00002/"))
            ],
            ["task/shard.db is not there"],
        ),
    ],
)
def test_another_database_has_at_least_the_size_that_it_had(
    bucket: Bucket, folder: Any, manifest: Manifest, change: Callable[[Any, Manifest], object], told: list[str]
) -> None:
    """A shard has several objects, and its readers may add some."""
    manifest = as_slatedb(folder, manifest)
    change(folder, manifest)
    root = f"{PREFIX}/shards/run_id=r/db=00002/attempt=00-buildr-"
    assert damage(bucket, manifest) == [f"{root}{one}" for one in told]
    assert damage(bucket, replace(manifest, shards=manifest.shards[:2])) == []
