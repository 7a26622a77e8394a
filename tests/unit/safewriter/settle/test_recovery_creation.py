"""An attempt that was to create its table: closed by a tombstone, fenced by an empty table, or landed."""

from __future__ import annotations

import pytest

from safewriter.record.document import CommitPoint, Status
from tests.unit.safewriter.delta_log import File, creation
from tests.unit.safewriter.invariants import check
from tests.unit.safewriter.settle.traces import operations
from tests.unit.safewriter.world import World


def test_a_creation_that_was_never_sent_is_closed_by_a_tombstone() -> None:
    """An empty log cannot be fenced, so no commit is written; the note that comes later loses."""
    world = World(existing=False)
    job = world.job().begin()
    job.prepare()

    assert world.settle().status is Status.ROLLED_BACK
    assert world.log.versions == ()
    assert not job.note()
    assert world.settle().status is Status.ROLLED_BACK
    check(world)


def test_a_creation_whose_note_is_there_is_fenced_by_an_empty_table() -> None:
    """Version 0 has protocol and metaData of the commit that may be on its way, and none of its files."""
    world = World(existing=False, properties={"delta.enableChangeDataFeed": "true"}, features=("changeDataFeed",))
    job = world.job().begin()
    job.prepare()
    assert job.note()

    assert world.settle().status is Status.ROLLED_BACK

    assert [next(iter(action)) for action in world.log.read(0)] == ["commitInfo", "txn", "protocol", "metaData"]
    assert world.log.actions("metaData") == [creation({"delta.enableChangeDataFeed": "true"})[1]["metaData"]]
    assert operations(world) == ["SAFEWRITER FENCE"]
    assert not job.rebase()
    check(world)


@pytest.mark.parametrize("noted", [True, False])
def test_the_retry_of_a_creation_lands_once(noted: object) -> None:
    """On the empty table that the fence has left, or as a creation with a note of its own epoch."""
    world = World(existing=False)
    job = world.job().begin()
    job.prepare()
    if noted:
        job.note()
    world.settle()

    assert world.job().run()

    assert world.document.status is Status.COMMITTED
    check(world)


def test_a_creation_is_fenced_in_the_log_of_whoever_was_faster() -> None:
    """Another writer has created the table meanwhile, so an ordinary fence is enough."""
    world = World(existing=False)
    job = world.job().begin()
    job.prepare()
    assert job.note()
    world.log.create(table_id="another")
    world.append_foreign()

    assert world.settle().status is Status.ROLLED_BACK

    assert operations(world) == ["CREATE TABLE", "WRITE", "SAFEWRITER FENCE"]
    assert not job.rebase()
    check(world)


def test_a_creation_that_landed_is_committed() -> None:
    """Version 0 holds our transaction, so nothing has to be fenced off."""
    world = World(existing=False)
    world.job().begin().land()

    document = world.settle()

    assert (document.status, document.attempt.commit_version) == (Status.COMMITTED, 0)
    check(world)


@pytest.mark.parametrize("on", ["true", "TRUE", "True"])
def test_a_fence_of_a_creation_has_an_in_commit_timestamp(on: str) -> None:
    """The note says that the table wants one, in letters of any case."""
    world = World(existing=False, properties={"delta.enableInCommitTimestamps": on}, features=("inCommitTimestamp",))
    job = world.job().begin()
    job.prepare()
    job.note()

    world.settle()

    assert world.log.actions("commitInfo", 0)[0]["inCommitTimestamp"] == world.now_ms


def test_in_commit_timestamps_grow_through_fence_undo_and_retry() -> None:
    """The history of a table has no step back."""
    world = World(
        CommitPoint.SUCCESS, properties={"delta.enableInCommitTimestamps": "true"}, features=("inCommitTimestamp",)
    )
    job = world.job().begin()
    world.log.append(*job.files, txn=(world.key, 1), inCommitTimestamp=world.now_ms + 500)
    world.log.append(File("later"), inCommitTimestamp=world.now_ms + 90_000)
    world.settle()
    world.job().begin()
    world.settle()

    stamps = [info["inCommitTimestamp"] for info in world.log.actions("commitInfo") if "inCommitTimestamp" in info]
    assert operations(world)[-2:] == ["SAFEWRITER REVERT", "SAFEWRITER FENCE"]
    assert stamps == sorted(set(stamps))
    assert len(stamps) == 4
