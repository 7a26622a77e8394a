"""The lock service on S3 keeps a lock's record as one object, changes it by ETag, and refuses a damaged one."""

from __future__ import annotations

import pytest

from safewriter.coordination.backend import RecordChanged
from safewriter.coordination.backends.s3 import S3Backend
from safewriter.coordination.record import Record
from safewriter.errors import UnreadableCheckpointError
from tests.support.memory_store import MemoryObjectStore


@pytest.fixture
def store() -> MemoryObjectStore:
    return MemoryObjectStore(bucket="locks")


def test_a_record_is_one_object_that_is_written_only_as_it_was_read(store: MemoryObjectStore) -> None:
    """The ETag decides; another process's write stays."""
    backend = S3Backend(store)
    assert backend.read("lock") is None
    first = backend.write(Record("lock"), None)
    assert [one.key for one in store.list("")] == ["locks/lock.json"]
    assert backend.read("lock") == first
    with pytest.raises(RecordChanged):
        backend.write(Record("lock", token=9), None)
    second = backend.write(Record("lock"), first)
    assert second.version != first.version
    with pytest.raises(RecordChanged):
        backend.write(Record("lock", token=9), first)
    assert backend.read("lock") == second


def test_a_damaged_record_is_no_free_lock(store: MemoryObjectStore) -> None:
    """The message names the object."""
    store.put("locks/lock.json", b"{")
    with pytest.raises(UnreadableCheckpointError, match=r"s3://locks/locks/lock\.json"):
        S3Backend(store).read("lock")


@pytest.mark.parametrize("body", [b" " * (9 << 20), b"[" + b"{}," * 600_000 + b"{}]"])
def test_a_record_without_end_is_damage(store: MemoryObjectStore, body: bytes) -> None:
    """It is neither parsed nor, beyond the bound, read."""
    store.put("locks/orders.json", body)
    with pytest.raises(UnreadableCheckpointError, match="restore an earlier version"):
        S3Backend(store).read("orders")


def test_locks_are_the_objects_of_their_folder(store: MemoryObjectStore) -> None:
    """Other objects there are ignored."""
    backend = S3Backend(store)
    backend.write(Record("b.c"), None)
    backend.write(Record("a"), None)
    store.put("locks/readme.txt", b"")
    store.put("checkpoints/x.json", b"")
    assert list(backend.locks()) == ["a", "b.c"]


def test_s3_tells_nobody_of_a_change(store: MemoryObjectStore) -> None:
    """So a waiter sleeps; there is no session that could end."""
    naps: list[float] = []
    backend = S3Backend(store, sleep=naps.append)
    backend.wait(None, 0.5)
    backend.listen(lambda _: pytest.fail("told"))
    backend.close()
    assert naps == [0.5]
