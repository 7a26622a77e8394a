"""A document that somebody has forged leads no clean-up to files that a table needs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.record.checkpoints import HeldCheckpoint
from safewriter.record.document import Status
from safewriter.settle.recovery import Recovery
from safewriter.tables.table import UndecidableError
from tests.support.memory_store import MemoryObjectStore
from tests.unit.safewriter.delta_log import key_of
from tests.unit.safewriter.record.samples import attempt, document
from tests.unit.safewriter.settle.traces import data_files
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from tests.unit.safewriter.job import Job


def committed() -> tuple[World, Job]:
    """Return a committed write, and a later commit of another writer."""
    world = World()
    job = world.job().begin()
    world.sleep(2)
    job.land()
    assert job.success()
    world.sleep(2)
    world.append_foreign()
    world.grace_passes()
    return world, job


def forge(world: World, status: Status, **fields: Any) -> None:
    """Replace the document by one whose attempt is not clean, and has begun at the last version."""
    last = dataclasses.replace(world.document.attempt, cleaned=False, version_before=world.log.head, **fields)
    stored = world.checkpoints.read(world.key)
    assert stored is not None
    forged = dataclasses.replace(stored.document, status=status, attempts=(last,))
    assert world.checkpoints.replace(HeldCheckpoint(stored.document, stored.etag), forged)


@pytest.mark.parametrize("by", ["sweeper", "by hand"])
def test_a_committed_write_that_a_document_calls_rolled_back_keeps_its_files(by: str) -> None:
    """Whatever version its document says that it began at: versions as young as the files are read, too."""
    world, job = committed()
    forge(world, Status.ROLLED_BACK, settled_by=by, modified_ms=None)
    if by == "by hand":
        assert world.recovery().clean(world.key) == 1
    else:
        with pytest.raises(UndecidableError, match="holds this write, which its document calls rolled_back"):
            world.recovery().clean(world.key)
    assert {file.key for file in job.files} <= data_files(world)
    assert (job.leftover in data_files(world)) is (by == "sweeper")


def test_a_log_that_does_not_reach_back_to_the_files_keeps_them() -> None:
    """Nothing shows that no version has named them."""
    world, job = committed()
    forge(world, Status.ROLLED_BACK, modified_ms=None)
    for version in range(world.log.head):
        world.hide(key_of(version))
    before = data_files(world)
    with pytest.raises(UndecidableError, match="log retention"):
        world.recovery().clean(world.key)
    assert data_files(world) == before
    assert {file.key for file in job.files} <= before


@pytest.mark.parametrize("inside", [True, False])
def test_a_path_without_a_log_inside_a_table_keeps_its_files(*, inside: bool) -> None:
    """They may be that table's. Elsewhere they are those of an attempt that has died before it created its table."""
    world, folder, outer = World(), MemoryObjectStore(), MemoryObjectStore()
    nonce = "f" * 16
    one = attempt(nonce=nonce, version_before=-1)
    left = document(Status.ROLLED_BACK, table="s3://lake/t/day=1/h=2", owner=nonce, attempts=(one,))
    folder.put(name := f"{left.attempt.prefix}part-0.parquet", b"")
    for store in (folder, outer):  # as Delta makes them before the data of a table that it creates
        store.put("_delta_log/", b"")
        store.put("_delta_log/_staged_commits/", b"")
    if inside:
        outer.put(key_of(0), b"{}")
    stores = {"s3://lake/t/day=1/h=2": folder, "s3://lake/t": outer}
    recovery = Recovery(
        world.checkpoints, lambda uri: stores.get(uri, MemoryObjectStore()), clock=world.clock, audit_log=False
    )
    world.checkpoints.create(left)
    if inside:
        with pytest.raises(UndecidableError, match="lies inside the table s3://lake/t"):
            recovery.clean(left.write_key)
    else:
        assert recovery.clean(left.write_key) == 1
    assert [found.key for found in folder.list("") if found.key == name] == ([name] if inside else [])
