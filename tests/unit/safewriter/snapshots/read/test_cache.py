"""A reader's cache of snapshot shards keeps its size limit, and processes share its files and complete half ones."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.snapshots.read.cache import CacheFolder, name_of
from safewriter.snapshots.read.reader import SnapshotReader
from safewriter.snapshots.write.publish import Publisher
from tests.support.snapshots import PREFIX, Bucket, Folder, build, publish

if TYPE_CHECKING:
    from safewriter.snapshots.read.cache import CachedFile

T0 = datetime(2026, 11, 20, tzinfo=UTC)
ROWS = dict.fromkeys(range(100), b"v")


def stored(cache: CacheFolder, name: str, size: int = 100) -> CachedFile:
    with cache.part(size) as part:
        part.write(b"x" * size)
        part.flush()
        return cache.keep(part, name)


def aged(folder: Path, **ages_s: int) -> None:
    for name, age_s in ages_s.items():
        os.utime(folder / f"{name}.db", (1_000_000 - age_s,) * 2)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "lock")


def test_the_longest_unused_file_goes_first(tmp_path: Path) -> None:
    """Files are removed only until there is enough room."""
    cache = CacheFolder(tmp_path, 300)
    for name in ("a", "b", "c"):
        stored(cache, name)
    aged(tmp_path, a=1, b=3, c=2)
    assert cache.make_room(150) == 0
    assert names(tmp_path) == ["a.db"]
    assert cache.make_room(200) == 0
    assert names(tmp_path) == ["a.db"]


def test_without_a_limit_nothing_goes(tmp_path: Path) -> None:
    """All files stay."""
    cache = CacheFolder(tmp_path)
    stored(cache, "a")
    assert (cache.make_room(1 << 60), names(tmp_path)) == (0, ["a.db"])


def test_a_file_in_use_stays_and_was_used_until_it_is_not(tmp_path: Path) -> None:
    """The excess is returned; a file's last use is when its last reference goes."""
    cache = CacheFolder(tmp_path, 100)
    used = stored(cache, "used")
    stored(cache, "young")
    aged(tmp_path, used=1000, young=1)
    assert (cache.make_room(50), names(tmp_path)) == (50, ["used.db"])
    del used
    stored(cache, "old")
    aged(tmp_path, old=1)
    assert (cache.make_room(0), names(tmp_path)) == (0, ["used.db"])


def test_a_file_that_is_opened_is_used_from_then_on(tmp_path: Path) -> None:
    """A process that dies cannot update the time later."""
    cache = CacheFolder(tmp_path)
    stored(cache, "a")
    aged(tmp_path, a=1000)
    file = cache.find("a", None)
    assert file is not None
    assert file.path.stat().st_mtime > 1_000_000


def test_a_file_in_use_by_another_process_stays(tmp_path: Path) -> None:
    """It stays until that process ends, even by a kill."""
    stored(CacheFolder(tmp_path), "a")
    program = (
        "import sys; from pathlib import Path; from safewriter.snapshots.read.cache import CacheFolder\n"
        "file = CacheFolder(Path(sys.argv[1])).find('a', 100); print(file is not None, flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline() == "True\n"
            cache = CacheFolder(tmp_path, 1)
            assert (cache.make_room(0), names(tmp_path)) == (99, ["a.db"])
        finally:
            other.kill()
    assert (cache.make_room(0), names(tmp_path)) == (0, [])


def test_what_is_no_shard_stays(tmp_path: Path) -> None:
    """It does not count towards the limit, either."""
    (tmp_path / "notes").write_bytes(b"x" * 1000)
    assert (CacheFolder(tmp_path, 100).make_room(0), names(tmp_path)) == (0, ["notes"])


def test_parts_count_and_those_of_the_dead_are_removed(tmp_path: Path) -> None:
    """A part counts with its final size from the beginning; a living process's part is never removed."""
    cache = CacheFolder(tmp_path, 100)
    (tmp_path / "dead.part").write_bytes(b"x" * 1000)
    with cache.part(80):
        assert cache.make_room(50) == 30
        assert len(names(tmp_path)) == 1
    assert names(tmp_path) == []


def test_the_first_of_two_processes_gives_the_file_its_name(tmp_path: Path) -> None:
    """The other one uses that file."""
    cache = CacheFolder(tmp_path)
    first = stored(cache, "a")
    inode = first.path.stat().st_ino
    second = stored(cache, "a")
    assert (second.path.stat().st_ino, names(tmp_path)) == (inode, ["a.db"])


def test_a_file_of_another_size_is_fetched_again(tmp_path: Path) -> None:
    """A crash may have truncated it. Without a known size the file is used as it is."""
    cache = CacheFolder(tmp_path)
    stored(cache, "a", 50)
    assert cache.find("a", None) is not None
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert cache.find("a", 100) is None
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert names(tmp_path) == []


def test_a_part_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a crash cannot leave a name without its content."""
    synced = []

    def noted(fd: int) -> None:
        synced.append((os.fstat(fd).st_size, names(tmp_path)[0].endswith(".part")))

    monkeypatch.setattr(os, "fsync", noted)
    stored(CacheFolder(tmp_path), "a")
    assert synced == [(100, True)]


def test_a_file_of_somebody_else_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with another digest is removed; the reader's own files were checked while it fetched them."""
    digest = hashlib.sha256(b"x" * 100).hexdigest()
    looked = []
    file_digest = hashlib.file_digest

    def noted(file: Any, name: str) -> Any:
        looked.append(name)
        return file_digest(file, name)

    own, other = CacheFolder(tmp_path), CacheFolder(tmp_path)
    stored(own, digest)
    monkeypatch.setattr(hashlib, "file_digest", noted)
    assert own.find(digest, 100, digest) is not None
    assert looked == []
    for _ in range(2):
        assert other.find(digest, 100, digest) is not None
    assert looked == ["sha256"]
    assert CacheFolder(tmp_path).find(digest, 100, "another one") is None
    assert names(tmp_path) == []


def test_a_content_has_one_name(tmp_path: Path) -> None:
    """The name is the SHA-256; without one, it depends on `checkpoint_id` and URL."""
    (shard,) = build(Bucket(), {1: b"v"}, "r", created=T0, num_dbs=1).shards
    elsewhere = replace(shard, db_url="s3://memory/elsewhere", checkpoint_id="other")
    assert name_of(shard) == name_of(elsewhere) == shard.sha256
    others = [replace(one, sha256=None) for one in (shard, elsewhere, replace(shard, checkpoint_id="other"))]
    assert len({name_of(one) for one in others}) == 3


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


def test_a_second_reader_of_a_cache_fetches_nothing(bucket: Bucket, tmp_path: Path) -> None:
    """This also holds for another snapshot's shard with the same content."""
    folder: Any = Folder(bucket, "kv/")
    publish(folder, ROWS, "r", created=T0)
    with SnapshotReader(PREFIX, open_store=bucket.opened, cache=tmp_path) as one:
        one.multi_get(ROWS)
    publish(folder, ROWS, "again", created=T0 + timedelta(hours=1))
    for listed in list(bucket.list("kv/shards/")):
        bucket.delete(listed.key)
    with SnapshotReader(PREFIX, open_store=bucket.opened, cache=tmp_path) as other:
        assert other.multi_get(ROWS) == ROWS


def test_shards_of_another_snapshot_go_before_open_ones(bucket: Bucket, tmp_path: Path) -> None:
    """Open shards are closed last, and fetched again; the limit holds."""
    folder: Any = Folder(bucket, "kv/")
    publish(folder, ROWS, "r", created=T0)
    size = next(bucket.list("kv/shards/")).size
    limit = 3 * size
    (tmp_path / "of-another-one.db").write_bytes(b"x" * size)
    with SnapshotReader(PREFIX, open_store=bucket.opened, cache=tmp_path, cache_limit_bytes=limit) as one:
        homes = {one.route(key): key for key in ROWS}
        for db_id in (0, 1, 2):
            one.get(homes[db_id])
        assert not (tmp_path / "of-another-one.db").exists()
        kept = {name_of(shard) for shard in one.manifest.shards[:3]}
        assert {path.stem for path in tmp_path.glob("*.db")} == kept
        one.get(homes[3])  # closes the shard that was opened first
        assert {path.stem for path in tmp_path.glob("*.db")} == {name_of(shard) for shard in one.manifest.shards[1:4]}
        assert one.multi_get(ROWS) == ROWS
        assert sum(path.stat().st_size for path in tmp_path.glob("*.db")) <= limit


def test_a_limit_that_was_lowered_is_kept_from_the_start(bucket: Bucket, tmp_path: Path) -> None:
    """The reader makes room before it fetches."""
    publish(Folder(bucket, "kv/"), ROWS, "r", created=T0)
    (tmp_path / "a.db").write_bytes(b"x" * 1000)
    SnapshotReader(PREFIX, open_store=bucket.opened, cache=tmp_path, cache_limit_bytes=999).close()
    assert names(tmp_path) == []


def test_half_a_file_in_the_cache_is_fetched_again(bucket: Bucket, tmp_path: Path) -> None:
    """A crash may have left it."""
    publish(Folder(bucket, "kv/"), {1: b"v"}, "r", created=T0)
    with SnapshotReader(PREFIX, open_store=bucket.opened, cache=tmp_path) as one:
        (tmp_path / f"{one.manifest.shards[0].sha256}.db").write_bytes(b"")
        assert one.get(1) == b"v"


def test_a_shard_of_another_program_is_taken_as_it_is(bucket: Bucket, tmp_path: Path) -> None:
    """Without a SHA-256, the manifest's size may not be that of the file."""
    folder: Any = Folder(bucket, "kv/")
    manifest = build(folder, {1: b"v"}, "r", created=T0, num_dbs=1)
    publisher = Publisher(folder)
    foreign = tuple(replace(shard, sha256=None, db_bytes=0) for shard in manifest.shards)
    publisher.publish(replace(manifest, shards=foreign), publisher.base())
    for _ in range(2):
        with SnapshotReader(PREFIX, open_store=bucket.opened, cache=tmp_path) as one:
            assert one.get(1) == b"v"
        for listed in list(bucket.list("kv/shards/")):
            bucket.delete(listed.key)
