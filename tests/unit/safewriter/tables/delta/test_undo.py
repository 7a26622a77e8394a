"""The undo of a landed Delta commit finds it by its transaction, and removes exactly its files in a new commit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.objects import StoreError
from safewriter.tables.delta.commit import Signature
from safewriter.tables.delta.fence import fence
from safewriter.tables.delta.history import DeltaHistory
from safewriter.tables.delta.undo import undo as undo_commit
from tests.unit.safewriter.delta_log import File, append_actions, creation
from tests.unit.safewriter.tables.delta.undoing import landed, live, undo
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# -- looking for our commit --------------------------------------------------------------------------------------------


def test_our_commit_is_found_by_its_transaction() -> None:
    """Foreign commits around it do not matter."""
    world, job = landed()
    world.append_foreign()

    assert live(world, job) == 2


def test_a_commit_of_a_later_epoch_is_not_seen() -> None:
    """A settler that slept must not find the commit of a later attempt."""
    world, job = landed()
    world.log.append(File("later"), txn=(world.key, 3))

    assert live(world, job, epoch=1) == 2
    assert live(world, job, epoch=0) is None


def test_a_commit_of_an_earlier_epoch_is_ours_too() -> None:
    """The document's epoch is an upper bound."""
    world, job = landed()

    assert live(world, job, epoch=9) == 2


def test_a_fence_is_not_our_commit() -> None:
    """It bears the same transaction action, and nothing of the write."""
    world = World()
    job = world.job().begin()
    fence(DeltaHistory(world.lake, world.clock), job.document, world.checkpoints, world.clock)

    assert live(world, job) is None


def test_another_application_is_not_our_commit() -> None:
    """The write key decides, not the version of the transaction."""
    world = World()
    job = world.job().begin()
    world.log.append(File("x"), txn=("another", 1))

    assert live(world, job) is None


def test_an_undone_commit_is_not_live() -> None:
    """Only our own revert counts as one: a mark of another write does not."""
    world, job = landed()
    world.append_foreign()

    assert undo(world, job) is None
    assert live(world, job) is None


# -- undoing it --------------------------------------------------------------------------------------------------------


def test_a_revert_removes_exactly_our_files() -> None:
    """Every other writer's files stay, those committed after ours too."""
    world, job = landed()
    world.append_foreign()

    assert undo(world, job) is None

    assert world.log.live() == sorted(file.key for file in world.foreign)
    removed = world.log.actions("remove", 4)
    assert [action["path"] for action in removed] == [file.path for file in job.files]


def test_a_removal_has_the_form_that_delta_gives_it() -> None:
    """Like Spark's for a DELETE: without NULL partition values, and without fields that the file did not have."""
    world = World()
    job = world.job().begin()
    file = File("day=x%20y/a.parquet", {"day": "x y", "hour": None})
    tagged = file.add(tags={"k": "v"}, baseRowId=0, defaultRowCommitVersion=2)
    actions = append_actions((File("b.parquet"),), txn=(world.key, 1))
    world.log.commit([*actions, tagged])

    assert undo(world, job) is None

    plain, full = world.log.actions("remove", 3)
    assert full == {
        "path": "day=x%20y/a.parquet",
        "deletionTimestamp": world.now_ms,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {"day": "x y"},
        "size": 100,
        "tags": {"k": "v"},
        "baseRowId": 0,
        "defaultRowCommitVersion": 2,
    }
    assert plain == {
        "path": "b.parquet",
        "deletionTimestamp": world.now_ms,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": 100,
    }


def test_a_revert_bears_no_transaction() -> None:
    """Our commit itself is the fence; the retry's transaction must not meet another one."""
    world, job = landed()

    assert undo(world, job) is None

    assert world.log.actions("txn", 3) == []
    assert world.log.actions("commitInfo", 3)[0]["operation"] == "SAFEWRITER REVERT"


def test_a_revert_is_not_done_twice() -> None:
    """A second settler with the same commit finds it undone already."""
    world, job = landed()
    log = DeltaHistory(world.lake, world.clock)
    ours = log.read(2)

    assert undo_commit(log, job.document, log.since(job.document.attempt), ours, world.clock) is None
    assert undo_commit(log, job.document, log.since(job.document.attempt), ours, world.clock) is None
    assert world.log.head == 3


def contended(
    append: Callable[[int, list[dict[str, Any]]], bool], others: Iterator[Callable[[], object]]
) -> Callable[[int, list[dict[str, Any]]], bool]:
    """Return an append before each of which another writer commits, while there are any."""

    def after_another(version: int, actions: list[dict[str, Any]]) -> bool:
        next(others, lambda: None)()
        return append(version, actions)

    return after_another


def test_a_slot_that_was_lost_is_followed_by_a_new_look() -> None:
    """A foreign commit takes the slot of the revert; the revert lands after it."""
    world, job = landed()
    log = DeltaHistory(world.lake, world.clock)
    log.append = contended(log.append, iter([world.append_foreign] * 2))  # type: ignore[method-assign, assignment]

    assert undo_commit(log, job.document, log.since(job.document.attempt), log.read(2), world.clock) is None
    assert world.log.live() == sorted(file.key for file in world.foreign)
    assert len(world.foreign) == 3


def test_a_lost_slot_has_the_table_described_no_second_time() -> None:
    """Each would be a request. The commit that took the slot is judged alone: if it changes the table, ours stays."""
    append = append_actions((File("x"),), isBlindAppend=True)
    for actions, told in ((append, "None"), (creation(), "changed the table's schema or properties")):
        world, job = landed()
        log = DeltaHistory(world.lake, world.clock)
        described: list[int] = []
        log.append = contended(log.append, iter([partial(world.log.commit, actions)]))  # type: ignore[method-assign, assignment]
        log.checksum = described.append  # type: ignore[method-assign, assignment]

        found = undo_commit(log, job.document, log.since(job.document.attempt), log.read(2), world.clock)
        assert told in str(found)
        assert described == []


def test_a_revert_that_finds_no_free_slot_gives_up() -> None:
    """The loop ends although another writer is always faster."""
    world, job = landed()
    log = DeltaHistory(world.lake, world.clock)
    log.append = lambda version, actions: False  # type: ignore[method-assign]

    with pytest.raises(StoreError, match="no free slot for an undo"):
        undo_commit(log, job.document, log.since(job.document.attempt), log.read(2), world.clock)


@pytest.mark.parametrize("on", ["true", "TRUE"])
def test_a_revert_of_a_table_with_in_commit_timestamps_is_dated(on: str) -> None:
    """Its time is later than all before it, ours included."""
    world = World(properties={"delta.enableInCommitTimestamps": on}, features=("inCommitTimestamp",))
    job = world.job().begin()
    ahead = world.now_ms + 70_000
    world.log.append(*job.files, txn=(world.key, 1), inCommitTimestamp=ahead)

    assert undo(world, job) is None

    assert world.log.actions("commitInfo", 3)[0]["inCommitTimestamp"] == ahead + 1


def test_another_write_s_undo_undoes_nothing_of_ours() -> None:
    """Its signature names a version, too, but one of its own write."""
    world, job = landed()
    info = {"operation": "SAFEWRITER REVERT", "userMetadata": Signature("sw-other", 1, reverts=2).to_text()}
    world.log.commit([{"commitInfo": info}])

    assert live(world, job) == 2
