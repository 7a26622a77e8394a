"""A forked process reads on with its parent's snapshot reader, and leaves cache and locks to the parent."""

from __future__ import annotations

import fcntl
import gc
import os
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from safewriter.snapshots.read.cache import CacheFolder
from safewriter.snapshots.read.reader import SnapshotReader
from tests.support.snapshots import PREFIX, Bucket, Folder, publish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ROWS = dict.fromkeys(range(50), b"v")


@pytest.fixture
def reader() -> Iterator[SnapshotReader]:
    """A reader with its own cache, and one shard in it."""
    bucket = Bucket()
    publish(Folder(bucket, "kv/"), ROWS, "r", created=datetime(2026, 11, 20, tzinfo=UTC))
    with SnapshotReader(PREFIX, open_store=bucket.opened) as one:
        one.get(0)
        yield one


def in_child(work: Callable[[], object]) -> None:
    """Call the function in a forked child, which must exit with 0."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 - the test must not go on in the child
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize("ends", ["by closing the reader", "by its exit handlers"])
def test_a_child_leaves_the_cache_to_its_parent(reader: SnapshotReader, ends: str) -> None:
    """It reads with the parent's reader, and both can go on; the parent removes the cache."""

    def read() -> None:
        assert reader.multi_get(ROWS) == ROWS
        if ends == "by closing the reader":
            reader.close()
        else:
            assert reader._remove is not None
            reader._remove()  # as `weakref.finalize` does when a process exits

    in_child(read)
    assert reader.multi_get(ROWS) == ROWS
    folder = reader._cache._folder
    assert folder.exists()
    reader.close()
    assert not folder.exists()


def test_a_reader_that_nobody_has_any_more_removes_its_cache(reader: SnapshotReader) -> None:
    """A reader without references does what a closed one does."""
    other = SnapshotReader(PREFIX, open_store=reader._source.open_store)
    folder = other._cache._folder
    del other
    gc.collect()
    assert not folder.exists()


def test_a_child_that_was_forked_under_the_lock_does_not_keep_it(tmp_path: Path) -> None:
    """The parent's release also releases the child's."""
    cache = CacheFolder(tmp_path)
    come, gone = os.pipe()
    with cache._locked():
        pid = os.fork()
        if pid == 0:
            os.read(come, 1)  # stay alive until the parent is done
            os._exit(0)
    try:
        in_child(lambda: locked_at_once(tmp_path))
    finally:
        os.write(gone, b"x")
        os.waitpid(pid, 0)
        os.close(come)
        os.close(gone)


def locked_at_once(folder: Path) -> None:
    with (folder / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
