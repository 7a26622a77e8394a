"""The settler of a Delta write lists the log once for an undo, keeps its time, and finds the traces of attempts."""

from __future__ import annotations

from threading import Barrier
from typing import TYPE_CHECKING, Any, Final

import pytest

from safewriter.errors import UnknownOutcomeError
from safewriter.objects import StoreError
from safewriter.record.document import CommitPoint, Status
from safewriter.settle.recovery import Cause, Evidence
from safewriter.tables.delta.history import DeltaHistory
from safewriter.tables.delta.table import DeltaTable
from safewriter.tables.table import Intent, Landed, Trace, UndecidableError
from tests.unit.safewriter.delta_log import File, creation, key_of
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from tests.unit.safewriter.job import Job

RESTORED: Final = {"commitInfo": {"operation": "RESTORE"}}


def table(world: World, network: Network | None = None, **more: Any) -> DeltaTable:
    return DeltaTable((network or Network()).store(world.lake), world.checkpoints, world.clock, **more)


def test_an_undo_lists_the_log_once() -> None:
    """The commits seen before rolling_back was written count until a slot after them is lost."""
    world, network = World(CommitPoint.SUCCESS), Network()
    world.job().begin().land()

    document = world.settle(Cause.KILLED, Evidence(cleans_later=True), network)

    assert document.status is Status.ROLLED_BACK
    assert [sent.key for sent in network.sent if sent.verb == "list"] == ["_delta_log/"]


def test_what_was_listed_serves_the_revert_only() -> None:
    """If the document says in_progress again, or another settler has changed it, the log is read again."""
    world, network = World(), Network()
    document = world.job().begin().land().document
    found = table(world, network)

    for _ in range(2):
        assert (
            found.next_move(document, Intent("exception", undo=True, nothing_sent=False)).status is Status.ROLLING_BACK
        )

    assert [sent.key for sent in network.sent if sent.verb == "list"] == ["_delta_log/"] * 2


def test_a_settler_that_is_out_of_time_reads_no_version() -> None:
    """Nothing is concluded from a log that was read in part."""
    world = World()
    document = world.job().begin().land().document

    with pytest.raises(StoreError, match="out of time while reading version 2"):
        table(world, may_go_on=lambda: False).next_move(document, Intent("killed", undo=False, nothing_sent=False))


def test_without_a_bound_a_settler_may_take_its_time() -> None:
    """Commands of the operator do so."""
    world = World()
    document = world.job().begin().land().document

    assert (
        table(world).next_move(document, Intent("operator", undo=False, nothing_sent=False)).status is Status.COMMITTED
    )


def test_the_sight_of_another_format_is_a_mistake_of_ours() -> None:
    """It must not be mistaken for this table's."""
    world = World()
    sight: Any = object()

    with pytest.raises(TypeError):
        table(world).confirm(world.job().begin().document, sight)


def test_a_note_that_is_of_no_creation_means_that_the_table_is_gone() -> None:
    """The attempt has appended to a table that is gone now: no empty one must be made in its place."""
    world = World(existing=False)
    job = world.job()
    job.claim()
    world.bucket.create(world.checkpoints.note_key(world.key, 1), b'{"note":{"nonce":"n"}}\n')

    with pytest.raises(UndecidableError, match="is gone"):
        table(world).next_move(job.document, Intent("killed", undo=False, nothing_sent=False))
    assert world.log.head == -1


def test_a_trace_is_that_of_the_highest_epoch() -> None:
    """An earlier attempt was fenced; the trace also has the version before the commit."""
    world = World()
    world.job().begin()
    world.grace_passes()
    world.settle()
    world.append_foreign()
    job = world.job().begin()
    assert table(world).trace(world.key, 0) == Trace(1)
    job.land()

    found = table(world).trace(world.key, 0)

    assert found is not None
    assert found.landed is not None
    assert (found.epoch, found.landed.commit_version, found.before) == (2, job.slot, job.slot - 1)
    assert table(world).trace("sw-of-another", 0) is None


def test_of_several_fences_the_highest_counts() -> None:
    """A claim must go past all of them."""
    world = World()
    for _ in range(2):
        world.job().begin()
        world.grace_passes()
        world.settle()

    assert table(world).trace(world.key, 0) == Trace(2)


def undone(world: World) -> Job:
    """Land a commit and have it undone."""
    job = world.job().begin().land()
    world.grace_passes()
    world.settle(Cause.EXCEPTION)
    assert world.document.status is Status.ROLLED_BACK
    return job


@pytest.mark.parametrize("folder", ["", "s3a://lake/accommodations/"])
def test_an_undone_write_that_somebody_brings_back_is_in_the_table(folder: str) -> None:
    """`RESTORE` to an undone version adds its files again, a clone by their URIs: a retry would write them twice."""
    world = World()
    job = undone(world)
    assert table(world).trace(world.key, 0) == Trace(1)
    version = world.log.commit([RESTORED, *(File(f"{folder}{file.path}").add() for file in job.files)])
    assert table(world).trace(world.key, 0) == Trace(1, Landed(version, None, 200), version - 1)
    found = table(world).trace_from(world.key, job.slot + 1)
    assert found is not None, "from the undo on"
    assert found.landed == Landed(version, None, 200)


def test_a_part_of_an_undone_write_decides_nothing() -> None:
    """A retry would write some of its rows twice, or a skip would lose the others."""
    world = World()
    job = undone(world)
    world.log.commit([RESTORED, job.files[0].add()])
    with pytest.raises(UnknownOutcomeError, match=r"of which 1 are there now.* use a new clientToken"):
        table(world).trace(world.key, 0)


def test_files_of_the_write_in_a_table_made_anew_decide_nothing() -> None:
    """`CONVERT TO DELTA` takes every file of the folder; the new log says nothing of the write."""
    world = World()
    job = undone(world)
    attempt = world.document.attempts[0]
    for version in range(world.log.head + 1):
        world.lake.delete(key_of(version))
    assert table(world).trace_undone(world.key, attempt) is None
    world.log.commit([{"commitInfo": {"operation": "CONVERT"}}, *creation(), *(file.add() for file in job.files)])
    with pytest.raises(UnknownOutcomeError, match="of which 2 are there now"):
        table(world).trace_undone(world.key, attempt)


def removal(file: File) -> dict[str, Any]:
    return {"remove": {"path": file.path, "deletionTimestamp": 1, "dataChange": True}}


@pytest.mark.parametrize("operation", ["RESTORE", "DELETE"])
def test_rows_that_were_brought_back_and_taken_out_again_are_not_in_the_table(operation: str) -> None:
    """A restore by mistake, and another one back: a retry that was skipped for it would write no row."""
    world = World()
    job = undone(world)
    world.log.commit([RESTORED, *(file.add() for file in job.files)])
    others = [File("other.parquet").add()] if operation == "RESTORE" else []
    world.log.commit([{"commitInfo": {"operation": operation}}, *map(removal, job.files), *others])
    assert table(world).trace(world.key, 0) == Trace(1)
    assert table(world).trace_undone(world.key, world.document.attempts[0]) == Trace(1)


def test_rows_of_which_a_part_was_taken_out_again_decide_nothing() -> None:
    """A retry would write the others twice."""
    world = World()
    job = undone(world)
    world.log.commit([RESTORED, *(file.add() for file in job.files)])
    world.log.commit([{"commitInfo": {"operation": "DELETE"}}, removal(job.files[0])])
    with pytest.raises(UnknownOutcomeError, match="of which 1 are there now"):
        table(world).trace(world.key, 0)


def test_rows_that_were_brought_back_and_compacted_are_in_the_table() -> None:
    """No file of the write is left then; a restore after that may have taken the rows out, or not."""
    world = World()
    job = undone(world)
    attempt = world.document.attempts[0]
    version = world.log.commit([RESTORED, *(file.add() for file in job.files)])
    world.log.commit([{"commitInfo": {"operation": "OPTIMIZE"}}, *map(removal, job.files), File("large").add()])
    expected = Trace(1, Landed(version, None, 200), version - 1)
    assert table(world).trace(world.key, 0) == expected
    assert table(world).trace_undone(world.key, attempt) == expected
    world.log.commit([RESTORED, removal(File("large"))])
    with pytest.raises(UnknownOutcomeError, match="was made of such a file"):
        table(world).trace_undone(world.key, attempt)


def test_two_undone_attempts_that_are_back_decide_nothing() -> None:
    """The batch is in the table twice already."""
    world = World()
    files = [*undone(world).files, *undone(world).files]
    world.log.commit([RESTORED, *(file.add() for file in files)])
    with pytest.raises(UnknownOutcomeError, match="of which 4 are there now"):
        table(world).trace(world.key, 0)


def test_an_undo_alone_tells_the_epoch() -> None:
    """The commit may be older than what is read: a claim must go past its epoch, and a verdict must name it."""
    world = World()
    undone(world)
    job = undone(world)
    assert table(world).trace_from(world.key, job.slot + 1) == Trace(2)


def test_a_log_that_no_longer_shows_what_followed_an_undo_decides_nothing() -> None:
    """Somebody may have restored the rows in a version that is gone; the error is final, and says how to look."""
    world = World()
    job = undone(world)
    for version in range(world.log.head + 1):
        world.lake.delete(key_of(version))
    world.lake.put(key_of(job.slot + 5), b"{}")
    with pytest.raises(UnknownOutcomeError, match=rf"does not reach back to .* begins with {world.key}-: ") as raised:
        table(world).trace_undone(world.key, world.document.attempts[0])
    assert not raised.value.retryable


def test_the_look_for_restored_rows_in_a_long_log_is_quick_and_holds_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads 16 versions at a time, and holds no other writer's files: a busy table keeps no retry away."""
    world = World()
    job = undone(world)
    attempt = world.document.attempts[0]
    for _ in range(30 - (world.log.head - attempt.version_before)):
        world.append_foreign()
    version = world.log.commit(
        [RESTORED, *(file.add() for file in job.files), *(File(f"{n}").add() for n in range(99))]
    )
    world.append_foreign()
    together = Barrier(16)
    inner = DeltaHistory._body

    def body(self: DeltaHistory, number: int) -> Any:
        together.wait(timeout=10)  # all 16 come, or the test fails
        return inner(self, number)

    monkeypatch.setattr(DeltaHistory, "_body", body)
    monkeypatch.setattr("safewriter.tables.delta.history.HELD_MAX_BYTES", 12_000)
    found = table(world).trace_undone(world.key, attempt)
    assert found == Trace(1, Landed(version, None, 200), version - 1)


def test_other_writers_files_bring_nothing_back() -> None:
    """Nor does the removal of an undone file, or the next attempt's own commit."""
    world = World()
    undone(world)
    world.append_foreign()
    world.log.commit([RESTORED, File(f"{world.key}x-1-part.parquet").add()])
    assert table(world).trace(world.key, 0) == Trace(1)
    job = world.job().begin().land()
    assert table(world).trace(world.key, 0) == Trace(2, Landed(job.slot, 20, 200), job.slot - 1)
