"""The verification of a published snapshot counts and routes its rows again, and reports each difference."""

from __future__ import annotations

import errno
import hashlib
import re
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.snapshots.errors import ManifestParseError, ReaderStateError
from safewriter.snapshots.format.encoding import KeyEncoding, encode
from safewriter.snapshots.read.reader import SnapshotReader
from safewriter.snapshots.read.source import Source, url_of
from safewriter.snapshots.read.verification import Verification, verify
from safewriter.snapshots.write.publish import Publisher
from tests.support.snapshots import PREFIX, Bucket, Folder, as_slatedb, build, publish, shard_body

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.snapshots.format.manifest import Manifest, Shard

T0 = datetime(2026, 11, 20, tzinfo=UTC)
ROWS = dict.fromkeys(range(400), b"v" * 50)


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


def looked_at(bucket: Bucket, ref: str, **how: Any) -> Verification:
    return verify(Source(PREFIX, bucket.opened), ref, **how)


def published(bucket: Bucket, change: Callable[[Manifest], Manifest]) -> str:
    folder: Any = Folder(bucket, "kv/")
    publisher = Publisher(folder)
    return publisher.publish(change(build(folder, ROWS, "r", created=T0)), publisher.base())


@pytest.mark.parametrize(
    ("encoding", "rows"),
    [
        (KeyEncoding.U64BE, ROWS),
        (KeyEncoding.U32BE, ROWS),
        (KeyEncoding.UTF8, {f"é{key}": value for key, value in ROWS.items()}),
        (KeyEncoding.UTF8, {b"\xff%d" % key: value for key, value in ROWS.items()}),
        (KeyEncoding.RAW, {b"\xff%d" % key: value for key, value in ROWS.items()}),
    ],
)
def test_a_snapshot_as_it_was_published_is_sound(bucket: Bucket, encoding: KeyEncoding, rows: Any) -> None:
    """All rows are counted, and all keys, or some of each shard, are routed again."""
    ref = publish(Folder(bucket, "kv/"), rows, "r", created=T0, encoding=encoding)
    seen: list[int] = []
    found = looked_at(bucket, ref, done=seen.append)
    assert (found.shards, found.rows, found.keys, found.unread, found.faults) == (8, 400, 400, 0, ())
    assert seen == list(range(1, 9))
    some = looked_at(bucket, ref, keys_max=10)
    assert some.is_sound
    assert 40 < (some.keys or 0) <= 80
    with SnapshotReader(PREFIX, open_store=bucket.opened) as reader:
        assert reader.verify() == found


def put(bucket: Bucket, shard: Shard, body: bytes) -> Shard:
    """Give a shard another content, and return its new entry in the manifest."""
    bucket.put(url_of(shard).removeprefix("s3://memory/"), body)
    return replace(shard, db_bytes=len(body), sha256=hashlib.sha256(body).hexdigest())


def gone(bucket: Bucket, shard: Shard) -> Shard:
    bucket.delete(url_of(shard).removeprefix("s3://memory/"))
    return shard


def changed(bucket: Bucket, shard: Shard) -> Shard:
    key = url_of(shard).removeprefix("s3://memory/")
    bucket.put(key, bucket.get(key).body.replace(b"v" * 50, b"w" * 50))
    return shard


def grown(bucket: Bucket, shard: Shard) -> Shard:
    put(bucket, shard, shard_body([(encode(key, KeyEncoding.U64BE), b"w" * 50) for key in ROWS]))
    return shard


def longer(_: Bucket, shard: Shard) -> Shard:
    return replace(shard, db_bytes=shard.db_bytes + 1)


def fewer(_: Bucket, shard: Shard) -> Shard:
    return replace(shard, row_count=shard.row_count + 1)


def torn(bucket: Bucket, shard: Shard) -> Shard:
    body = bucket.get(url_of(shard).removeprefix("s3://memory/")).body
    return put(bucket, shard, body[:4096] + b"\0" * 300 + body[4396:])


def truncated(bucket: Bucket, shard: Shard) -> Shard:
    body = bucket.get(url_of(shard).removeprefix("s3://memory/")).body
    return put(bucket, shard, body[:4096])


def unused(bucket: Bucket, shard: Shard) -> Shard:
    """Add an unreferenced page: all rows stay readable."""
    body = bytearray(bucket.get(url_of(shard).removeprefix("s3://memory/")).body)
    pages = len(body) // 4096 + 1
    body[28:32] = pages.to_bytes(4, "big")
    return put(bucket, shard, bytes(body) + bytes(4096))


def elsewhere(bucket: Bucket, shard: Shard) -> Shard:
    return put(bucket, replace(shard, row_count=400), shard_body((encode(k, KeyEncoding.U64BE), b"") for k in ROWS))


def no_key(bucket: Bucket, shard: Shard) -> Shard:
    return put(bucket, replace(shard, row_count=1), shard_body([(b"\xff" * 8, b"")]))


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (gone, "is not there"),
        (changed, "has the SHA-256"),
        (grown, "has more bytes than the 8,192 that the manifest names"),
        (longer, "and the manifest names"),
        (fewer, r"rows, and the manifest names"),
        (torn, "damaged|cannot read"),
        (truncated, "damaged|cannot read"),
        (unused, "never used"),
        (elsewhere, "keys belong to another shard"),
        (
            no_key,
            "1 keys belong to another shard, or can be no keys of this snapshot; the first one is ffffffffffffffff",
        ),
    ],
)
def test_each_difference_is_told(bucket: Bucket, damage: Callable[[Bucket, Shard], Shard], what: str) -> None:
    """It is reported for its shard only; the others are checked as well."""
    ref = published(
        bucket,
        lambda manifest: replace(
            manifest, shards=tuple(damage(bucket, one) if one.db_id == 3 else one for one in manifest.shards)
        ),
    )
    found = looked_at(bucket, ref)
    assert not found.is_sound
    assert {fault.db_id for fault in found.faults} == {3}
    assert any(re.search(what, fault.what) for fault in found.faults), found.faults
    assert found.shards == 8
    assert len(found.faults) == 1 or damage not in (gone, unused)  # an unreadable shard is not checked further


def test_a_shard_without_rows_is_looked_at(bucket: Bucket) -> None:
    """Other writers may make such shards."""
    ref = published(
        bucket,
        lambda manifest: replace(
            manifest, shards=(put(bucket, replace(manifest.shards[0], row_count=0), shard_body([])),)
        ),
    )
    assert looked_at(bucket, ref, keys_max=10).is_sound


def test_a_rule_of_other_columns_is_told(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys alone cannot be routed again; everything else is checked."""

    class ByRegion:
        columns = ("region",)

    ref = publish(Folder(bucket, "kv/"), ROWS, "r", created=T0)
    monkeypatch.setattr("safewriter.snapshots.read.verification.routing_of", lambda *_: ByRegion())
    found = looked_at(bucket, ref)
    assert (found.keys, found.rows, found.is_sound) == (None, 400, True)


def test_a_manifest_that_cannot_be_read_is_told(bucket: Bucket) -> None:
    """It raises, since the manifest is needed for all checks."""
    ref = published(bucket, lambda manifest: replace(manifest, sharding={"strategy": "magic"}))
    with pytest.raises(ManifestParseError, match="magic"):
        looked_at(bucket, ref)
    with pytest.raises(ManifestParseError, match="is not there"):
        looked_at(bucket, "s3://memory/kv/manifests/none/manifest")
    with pytest.raises(ManifestParseError, match="does not lie below"):
        looked_at(bucket, "file:///etc/passwd")


def test_a_full_disk_is_no_fault_of_a_shard(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """It raises: the shard was not looked at."""
    ref = publish(Folder(bucket, "kv/"), ROWS, "r", created=T0)

    def full(*_: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("safewriter.snapshots.read.fetch._copy", full)
    with pytest.raises(ReaderStateError, match="No space left on device"):
        looked_at(bucket, ref)
    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with pytest.raises(ReaderStateError, match="No space left on device"):
        looked_at(bucket, ref)


def test_shards_in_another_database_are_not_read(bucket: Bucket) -> None:
    """The result says that their rows were not checked; their objects were."""
    ref = published(bucket, lambda manifest: as_slatedb(Folder(bucket, "kv/"), manifest))
    found = looked_at(bucket, ref)
    assert (found.shards, found.unread, found.rows, found.keys, found.faults) == (8, 8, 0, 0, ())
    table = next(listed.key for listed in bucket.list("kv/shards/run_id=r/db=00003/") if listed.key.endswith("sst"))
    bucket.delete(table)
    (fault,) = looked_at(bucket, ref).faults
    assert fault.db_id == 3
    assert fault.what.endswith("has 30 bytes, and the manifest names 1030")
