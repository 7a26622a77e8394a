"""The reader of snapshots finds values by key, refreshes, and shares shards between threads."""

from __future__ import annotations

import errno
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from safewriter.objects import s3
from safewriter.objects.store import StoreError
from safewriter.snapshots.errors import ConfigValidationError, KeyRangeError, ManifestParseError, ReaderStateError
from safewriter.snapshots.format import database
from safewriter.snapshots.format.current import CURRENT, ManifestAt
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.read import cache as cache_module
from safewriter.snapshots.read import snapshot
from safewriter.snapshots.read.reader import SnapshotReader
from safewriter.snapshots.read.source import Source
from safewriter.snapshots.read.verification import verify
from safewriter.snapshots.routing.hashing import digest
from safewriter.snapshots.write.publish import Publisher
from tests.support.snapshots import PREFIX, Bucket, Folder, build, publish
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from safewriter.snapshots.format.manifest import Manifest, Shard
    from safewriter.snapshots.read.cache import CachedFile
    from safewriter.snapshots.read.shards import OpenShard

T0 = datetime(2026, 11, 20, tzinfo=UTC)
ROWS = {number: f"value {number}".encode() for number in range(100)}


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


@pytest.fixture
def folder(bucket: Bucket) -> Any:
    return Folder(bucket, "kv/")


def reader(bucket: Bucket, **how: Any) -> SnapshotReader:
    return SnapshotReader(PREFIX, open_store=bucket.opened, **how)


def open_files(folder: Path) -> list[str]:
    """Return the shard files that this process has open."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = str(link.readlink())
        except FileNotFoundError:  # the descriptor of this listing
            continue
        if target.startswith(str(folder)) and ".db" in target:
            found.append(target)
    return found


def test_values_are_found_by_their_keys(bucket: Bucket, folder: Any) -> None:
    """A missing key gives None, whether or not its shard has rows; the order is kept, and keys may repeat."""
    publish(folder, {1: b"one", 2: b"two"}, "r", created=T0)
    with reader(bucket) as one:
        assert one.get(1) == b"one"
        assert one.get(3) is None
        assert list(one.multi_get(iter([2, 5, 1, 2])).items()) == [(2, b"two"), (5, None), (1, b"one")]
        assert [one.get(key) for key in range(100, 200)] == [None] * 100
        assert one.route(1) == digest(1) % 8
        assert (one.manifest.run_id, one.manifest_ref.endswith("_run_id=r/manifest")) == ("r", True)


@pytest.mark.parametrize(
    ("encoding", "rows"),
    [
        (KeyEncoding.U32BE, {0: b"a", 2**32 - 1: b"b"}),
        (KeyEncoding.UTF8, {"": b"a", "café": b"b"}),
        (KeyEncoding.RAW, {b"\xff\x00": b"a", b"x": b"b"}),
        (KeyEncoding.U64BE, {0: b"a", 2**63 - 1: b"b"}),
    ],
)
def test_keys_of_each_encoding_are_found(
    bucket: Bucket, folder: Any, encoding: KeyEncoding, rows: dict[Any, bytes]
) -> None:
    """This includes the first and the last key."""
    publish(folder, rows, "r", created=T0, encoding=encoding)
    with reader(bucket) as one:
        assert one.multi_get(rows) == rows


@pytest.mark.parametrize("key", [-1, 2**63, 2**64, True, "1", b"12345678", None, 1.0])
def test_no_key_is_told_so(bucket: Bucket, folder: Any, key: Any) -> None:
    """An invalid key raises instead of a look into another shard, also if it is the stored form of a key."""
    publish(folder, ROWS, "r", created=T0)
    with reader(bucket) as one, pytest.raises(KeyRangeError):
        one.get(key)


def test_a_shard_is_fetched_when_it_is_asked_for_and_once(
    bucket: Bucket, folder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening a snapshot fetches no shard; concurrent threads fetch a shard once."""
    publish(folder, ROWS, "r", created=T0)
    fetched: list[str] = []
    stream = bucket.stream

    def noted(key: str) -> Iterator[bytes] | None:
        fetched.append(key)
        until(lambda: len(fetched) > 1, timeout_s=0.2)  # give the other threads time to fetch, too
        return stream(key)

    monkeypatch.setattr(bucket, "stream", noted)
    together = threading.Barrier(8)

    def ask(one: SnapshotReader) -> bytes | None:
        together.wait(10)
        return one.get(1)

    with reader(bucket) as one:
        assert fetched == []
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(ask, [one] * 8)) == [b"value 1"] * 8
        assert len(fetched) == 1
        assert f"/db={digest(1) % 8:05d}/" in fetched[0]


def test_a_reader_stays_with_its_snapshot_until_it_refreshes(bucket: Bucket, folder: Any) -> None:
    """`refresh` returns whether there was another one."""
    publish(folder, {1: b"old"}, "first", created=T0)
    with reader(bucket) as one:
        publish(folder, {1: b"new"}, "second", created=T0)
        assert one.get(1) == b"old"
        assert one.refresh()
        assert (one.get(1), one.refresh()) == (b"new", False)
        assert one.manifest.run_id == "second"


def test_the_age_is_that_of_the_last_refresh(bucket: Bucket, folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refresh without a new snapshot counts; one that failed does not."""
    clock = [100.0]
    monkeypatch.setattr("safewriter.snapshots.read.reader.time.monotonic", lambda: clock[0])
    publish(folder, {1: b"one"}, "first", created=T0)
    with reader(bucket) as one:
        clock[0] = 160.0
        assert one.age_s == 60
        one.refresh()
        assert one.age_s == 0
        publish(folder, {1: b"two"}, "second", created=T0)
        clock[0] = 170.0
        one.refresh()
        assert one.age_s == 0
        folder.delete(CURRENT)
        clock[0] = 180.0
        with pytest.raises(ReaderStateError):
            one.refresh()
        assert one.age_s == 10


def silent(_: str, **__: object) -> None:
    raise StoreError("no answer")


@pytest.mark.parametrize("damage", ["gone", "no manifest", "no pointer", "no answer"])
def test_a_refresh_that_fails_keeps_the_snapshot(
    bucket: Bucket, folder: Any, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what cannot be read."""
    publish(folder, {1: b"old"}, "first", created=T0)
    with reader(bucket) as one:
        ref = publish(folder, {1: b"new"}, "second", created=T0)
        key = ref.removeprefix("s3://memory/")
        if damage == "gone":
            bucket.delete(key)
        elif damage == "no manifest":
            bucket.put(key, b"something else")
        elif damage == "no pointer":
            folder.delete(CURRENT)
        else:
            monkeypatch.setattr(bucket, "get", silent)
        with pytest.raises((ManifestParseError, ReaderStateError, StoreError)):
            one.refresh()
        monkeypatch.undo()
        assert (one.get(1), one.manifest.run_id) == (b"old", "first")


def test_without_a_snapshot_there_is_nothing_to_read(bucket: Bucket, folder: Any) -> None:
    """It also raises if `_CURRENT` names no manifest yet."""
    with pytest.raises(ReaderStateError, match="nothing was published yet"):
        reader(bucket)
    Publisher(folder).base(5)
    with pytest.raises(ReaderStateError, match="points to no snapshot"):
        reader(bucket)


@pytest.mark.parametrize("change", [{"sharding": {"strategy": "magic"}}, None])
def test_a_snapshot_that_cannot_be_read_asks_for_a_rollback(bucket: Bucket, folder: Any, change: Any) -> None:
    """At the start there is no other snapshot to keep."""
    publisher = Publisher(folder)
    manifest = build(folder, ROWS, "r", created=T0)
    ref = publisher.publish(replace(manifest, **change) if change else manifest, publisher.base())
    if change is None:
        bucket.delete(ref.removeprefix("s3://memory/"))
    with pytest.raises(ManifestParseError, match="go back to an earlier one by a rollback"):
        reader(bucket)


def test_a_shard_that_is_gone_is_told(bucket: Bucket, folder: Any) -> None:
    """The error has its URL."""
    publish(folder, {1: b"one"}, "r", created=T0)
    for listed in list(bucket.list("kv/shards/")):
        bucket.delete(listed.key)
    with reader(bucket) as one, pytest.raises(ReaderStateError, match=r"shard\.db is not there"):
        one.get(1)


def test_a_closed_reader_says_so(bucket: Bucket, folder: Any, tmp_path: Path) -> None:
    """A thread that was about to fetch a shard raises, too; the reader's own cache is removed."""
    publish(folder, ROWS, "r", created=T0)
    one = reader(bucket)
    one.get(1)
    state = one._opened()
    own = one._cache._folder
    one.close()
    assert not own.exists()
    for call in (lambda: one.get(1), lambda: one.multi_get([1]), one.refresh, lambda: one.manifest):
        with pytest.raises(ReaderStateError, match="is closed"):
            call()
    with pytest.raises(ReaderStateError, match="is closed"):
        [state.value(key, None) for key in ROWS]


def test_other_columns_decide_with_a_context(bucket: Bucket, folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule gets their values; a key that no shard can have is missing."""

    class ByRegion:
        columns = ("region",)
        num_dbs = 8

        def route(self, key: Any, context: Mapping[str, Any] | None = None) -> int | None:
            assert context is not None
            return digest(key) % 8 if context["region"] == "eu" else None

    publish(folder, ROWS, "r", created=T0)
    monkeypatch.setattr(snapshot, "routing_of", lambda *_: ByRegion())
    with reader(bucket) as one:
        assert one.get(1, routing_context={"region": "eu"}) == b"value 1"
        assert one.multi_get([1], routing_context={"region": "mars"}) == {1: None}
        assert one.route(1, routing_context={"region": "eu"}) == digest(1) % 8


def test_threads_that_end_leave_no_connection(bucket: Bucket, folder: Any, tmp_path: Path) -> None:
    """After any number of threads the file is open once for the reader, and once for this thread."""
    publish(folder, ROWS, "r", created=T0)
    with reader(bucket, cache=tmp_path) as one:
        one.get(1)
        before = len(open_files(tmp_path))
        for _ in range(30):
            thread = threading.Thread(target=one.get, args=(1,))
            thread.start()
            thread.join()
        assert len(open_files(tmp_path)) == before == 2


@pytest.fixture
def idle(bucket: Bucket, folder: Any, tmp_path: Path) -> Iterator[SnapshotReader]:
    """A reader with a shard that an idle thread has open."""
    publish(folder, {1: b"old"}, "first", created=T0)
    end = threading.Event()
    opened = threading.Event()

    def stay() -> None:
        one.get(1)
        opened.set()
        end.wait(30)

    with reader(bucket, cache=tmp_path) as one:
        thread = threading.Thread(target=stay)
        thread.start()
        assert opened.wait(10)
        yield one
        end.set()
        thread.join()


def test_a_refresh_closes_the_shards_of_all_threads(idle: SnapshotReader, folder: Any, tmp_path: Path) -> None:
    """Idle threads' shards are closed, too."""
    assert open_files(tmp_path)
    publish(folder, {1: b"new"}, "second", created=T0)
    assert idle.refresh()
    assert open_files(tmp_path) == []
    assert idle.get(1) == b"new"


def test_a_reading_that_has_begun_ends_with_its_snapshot(bucket: Bucket, folder: Any, tmp_path: Path) -> None:
    """Neither a refresh nor a small cache breaks it."""
    publish(folder, {1: b"old"}, "first", created=T0)
    with reader(bucket, cache=tmp_path, cache_limit_bytes=1) as one:
        state = one._opened()
        publish(folder, {1: b"new"}, "second", created=T0)
        one.refresh()
        assert state.value(1, None) == b"old"
        assert one.get(1) == b"new"
        assert state.value(1, None) == b"old"
        assert len(list(tmp_path.glob("*.db"))) == 2
        del state
        one._cache.make_room(0)
        assert len(list(tmp_path.glob("*.db"))) == 1


def test_threads_read_while_shards_make_room_and_snapshots_change(bucket: Bucket, folder: Any, tmp_path: Path) -> None:
    """Each read sees one of the snapshots, whole."""
    rows = range(12)
    snapshots = [
        publish(
            folder,
            {key: b"%d of %s" % (key, run.encode()) for key in rows},
            run,
            created=T0 + timedelta(hours=hour),
            num_dbs=3,
        )
        for hour, run in enumerate(("first", "second"))
    ]
    publisher = Publisher(folder)
    stop = threading.Event()

    def read(one: SnapshotReader) -> None:
        while not stop.is_set():
            found = one.multi_get(rows)
            (run,) = {value.split()[-1] for value in found.values() if value is not None}
            assert found == {key: b"%d of %s" % (key, run) for key in rows}

    with reader(bucket, cache=tmp_path, cache_limit_bytes=10_000) as one, ThreadPoolExecutor(3) as pool:
        try:
            results = [pool.submit(read, one) for _ in range(3)]
            for round_ in range(10):
                ref = snapshots[round_ % 2]
                publisher.point(ManifestAt(ref), one._source.manifest(ref), publisher.base())
                one.refresh()
                one.multi_get(rows)
        finally:
            stop.set()
        assert [result.result(30) for result in results] == [None] * 3


def test_a_shard_that_has_to_make_room_while_it_is_opened_is_not_kept(
    bucket: Bucket, folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The read succeeds; afterwards the file is closed."""
    publish(folder, ROWS, "r", created=T0)
    with reader(bucket, cache=tmp_path) as one:
        shards = one._opened()._shards
        connected = shards._connected

        def dropped(shard: Shard, file: CachedFile) -> OpenShard:
            opened = connected(shard, file)
            shards._drop(shard.db_id)
            return opened

        monkeypatch.setattr(shards, "_connected", dropped)
        assert one.get(1) == b"value 1"
        assert open_files(tmp_path) == []


def test_a_manifest_that_is_not_the_published_one_is_refused(bucket: Bucket, folder: Any) -> None:
    """`_CURRENT` has its SHA-256: another manifest there, though it can be read, is somebody's change."""
    ref = publish(folder, {1: b"first"}, "r", created=T0)
    with reader(bucket) as one:
        whole = one.manifest
    folder.put(ref.removeprefix("s3://memory/kv/"), replace(whole, shards=()).encode())
    for open_one in (lambda: reader(bucket), lambda: verify(Source(PREFIX, bucket.opened), ref)):
        with pytest.raises(ManifestParseError, match="somebody has changed the object"):
            open_one()


def test_a_manifest_of_a_writer_without_digests_is_read(bucket: Bucket, folder: Any) -> None:
    """The other writer's `_CURRENT` names none."""
    ref = publish(folder, {1: b"first"}, "r", created=T0)
    told = {"manifest_ref": ref, "run_id": "r", "updated_at": T0.isoformat(), "format_version": 1}
    folder.put(CURRENT, json.dumps(told).encode())
    with reader(bucket) as one:
        assert one.get(1) == b"first"


def test_a_pickled_reader_reads_the_same_snapshot(bucket: Bucket, folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's tasks get one from their driver, and all read one snapshot, until they refresh."""
    monkeypatch.setattr(s3, "open_store", bucket.opened)
    publish(folder, {1: b"first"}, "first", created=T0)
    with SnapshotReader(PREFIX) as one:
        pickled = pickle.dumps(one)
    publish(folder, {1: b"second"}, "second", created=T0 + timedelta(hours=1))
    with pickle.loads(pickled) as other:  # noqa: S301 - bytes of this test
        assert other.get(1) == b"first"
        assert other.refresh()
        assert other.get(1) == b"second"


def test_the_last_of_two_refreshes_counts(bucket: Bucket, folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slower refresh that began earlier does not restore its older snapshot."""
    publish(folder, {1: b"first"}, "first", created=T0)
    with reader(bucket) as one:
        publish(folder, {1: b"second"}, "second", created=T0)
        manifest = one._source.manifest
        other = threading.Thread(target=one.refresh)

        def slow(ref: str, sha256: str | None) -> Manifest:
            monkeypatch.undo()
            publish(folder, {1: b"third"}, "third", created=T0)
            other.start()
            other.join(0.1)  # it waits for the lock
            return manifest(ref, sha256)

        monkeypatch.setattr(one._source, "manifest", slow)
        one.refresh()
        other.join()
        assert one.get(1) == b"third"


def test_a_reader_needs_neither_numpy_nor_arrow() -> None:
    """Only builds need them."""
    program = """
import sys
for name in ("numpy", "pyarrow", "pyspark", "pandas"):
    sys.modules[name] = None
import datetime
from safewriter.snapshots import SnapshotReader
from tests.support.snapshots import PREFIX, Bucket, Folder, publish
bucket = Bucket()
publish(Folder(bucket, "kv/"), {1: b"one"}, "r", created=datetime.datetime.now(datetime.UTC))
with SnapshotReader(PREFIX, open_store=bucket.opened) as reader:
    print(reader.get(1), reader.verify().is_sound)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("b'one' True\n", "")


def test_a_limit_of_nothing_is_refused(bucket: Bucket, folder: Any) -> None:
    """No shard would fit."""
    for limit in (0, 1.5, "8"):
        with pytest.raises(ConfigValidationError, match="cache_limit_bytes is"):
            reader(bucket, cache_limit_bytes=limit)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint64, np.uint8])
def test_a_key_may_be_an_integer_of_numpy(bucket: Bucket, folder: Any, kind: Any) -> None:
    """Keys come from arrays. A truth value and a float of NumPy's are no keys, as Python's are none."""
    publish(folder, ROWS, "r", created=T0)
    with reader(bucket) as one:
        assert one.get(kind(5)) == ROWS[5]
        assert one.multi_get([kind(5)]) == {5: ROWS[5]}
        assert one.route(kind(5)) == one.route(5)
        others: list[Any] = [np.True_, np.float64(5)]
        for other in others:
            with pytest.raises(KeyRangeError):
                one.get(other)


def test_a_folder_that_cannot_hold_a_cache_is_told(
    bucket: Bucket, folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a file, lies below one, or the machine has no temporary folder; a text names a folder as a path does."""
    publish(folder, ROWS, "r", created=T0)
    (tmp_path / "file").touch()
    for cache in (tmp_path / "file", tmp_path / "file" / "cache"):
        with pytest.raises(ReaderStateError, match="take another folder"):
            reader(bucket, cache=cache)
    with reader(bucket, cache=str(tmp_path / "cache")) as one:
        assert one.get(5) == ROWS[5]
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(ReaderStateError, match="take another folder"):
        reader(bucket)


@pytest.mark.parametrize("call", ["truncate", "flush", "replace", "open"])
def test_a_full_disk_is_told_at_each_step_of_a_fetch(
    bucket: Bucket, folder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Neither the room for the file, its blocks, its name nor its opening raises an error of Python's or a damage."""
    publish(folder, ROWS, "r", created=T0)
    with reader(bucket, cache=tmp_path) as one:

        def full(*_: object, **__: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as broken:
            if call == "truncate":
                broken.setattr(cache_module.CacheFolder, "part", full)
            elif call == "flush":
                broken.setattr(os, "fsync", full)
            elif call == "replace":
                broken.setattr(Path, "replace", full)
            else:
                broken.setattr(database, "check_schema", full)
            with pytest.raises(ReaderStateError, match="No space left on device"):
                one.get(5)
        assert one.get(5) == ROWS[5]
