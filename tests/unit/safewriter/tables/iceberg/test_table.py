from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.table.refs import SnapshotRefType

from safewriter.errors import NotCommittedError, UnknownOutcomeError
from safewriter.objects.store import StoreError
from safewriter.record.document import NO_CHANGE, CommitPoint, Status
from safewriter.settle.recovery import Cause
from safewriter.tables.iceberg.metadata import Held
from safewriter.tables.iceberg.pointer import Pointer
from safewriter.tables.iceberg.session import StagingState
from safewriter.tables.iceberg.sql import SqlPointer
from safewriter.tables.iceberg.table import IcebergTable, name_of
from safewriter.tables.table import Intent, Landed, RetentionGapError, Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.record.checkpoints import HeldCheckpoint
    from safewriter.tables.iceberg.metadata import Fence
    from tests.unit.safewriter.tables.iceberg.bench import Bench

DAY_MS = 86_400_000
SENT, UNSENT = StagingState(passed=True, answered=True), StagingState(passed=False, answered=True)


@pytest.mark.parametrize("cause", [Cause.KILLED, Cause.EXCEPTION, Cause.SWEEPER])
@pytest.mark.parametrize("commit_point", CommitPoint)
def test_what_bears_its_mark_is_committed(bench: Bench, cause: Cause, commit_point: CommitPoint) -> None:
    """Only `success()` publishes, so nothing is left to decide, whoever asks."""
    snapshot = bench.publish(bench.claim(commit_point))
    document = bench.settle(cause)
    assert (document.status, document.attempt.commit_version, document.attempt.rows) == ("committed", snapshot, 10)
    assert document.attempt.bytes == 7
    assert set(bench.refs()) == {"main"}


@pytest.mark.parametrize("commit_point", CommitPoint)
def test_what_bears_none_is_fenced_off_and_rolled_back(bench: Bench, commit_point: CommitPoint) -> None:
    """The fence is a tag of the attempt's name on what main shows; main itself stays as it is."""
    held = bench.claim(commit_point)
    before = bench.refs()["main"]
    assert bench.settle().status is Status.ROLLED_BACK
    assert bench.refs() == {"main": before, name_of(held.document.attempt): before}
    assert bench.rows() == 10


def test_a_fence_is_a_tag_that_lives_a_week_from_now(bench: Bench) -> None:
    """Iceberg counts the age of a tag from its snapshot, which here is 300 days old and not of this clock."""
    made_ms = bench.main()[-1].timestamp_ms
    bench.now_ms = made_ms + 300 * DAY_MS
    held = bench.claim()
    bench.settle()
    tag = bench.load().metadata.refs[name_of(held.document.attempt)]
    assert tag.snapshot_ref_type is SnapshotRefType.TAG
    assert tag.max_ref_age_ms == 307 * DAY_MS


def test_a_fence_on_a_snapshot_of_the_future_lives_a_week(bench: Bench) -> None:
    """A clock that is behind makes it no shorter."""
    bench.now_ms = bench.main()[-1].timestamp_ms - DAY_MS
    held = bench.claim()
    bench.settle()
    assert bench.load().metadata.refs[name_of(held.document.attempt)].max_ref_age_ms == 7 * DAY_MS


def test_where_nothing_was_sent_the_table_is_not_asked(bench: Bench) -> None:
    """Nothing can arrive, so that nothing need be fenced off, and a catalog that is down is no obstacle."""
    bench.claim()
    bench.catalog.drop_table("db.t")
    assert bench.settle(nothing_sent=True).status is Status.ROLLED_BACK


def test_a_fenced_attempt_is_rolled_back_again_without_another_fence(bench: Bench) -> None:
    """The settler before died between the fence and the document."""
    held = bench.claim()
    bench.table().next_move(held.document, Intent("killed", undo=False, nothing_sent=False))
    before = bench.load().metadata_location
    assert bench.settle().status is Status.ROLLED_BACK
    assert bench.load().metadata_location == before


def test_a_publication_that_comes_between_look_and_fence_counts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the fence lands after it or is lost, the next look finds the mark."""
    held = bench.claim()
    _first(monkeypatch, lambda: bench.publish(held))
    assert bench.settle().status is Status.COMMITTED
    assert set(bench.refs()) == {"main"}


def test_a_foreign_commit_between_look_and_fence_only_delays_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fence then stands on what main shows by now."""
    held = bench.claim()
    _first(monkeypatch, lambda: bench.add("main", "foreign-1"))
    assert bench.settle().status is Status.ROLLED_BACK
    refs = bench.refs()
    assert refs[name_of(held.document.attempt)] == refs["main"]
    assert bench.rows() == 20


def _first(monkeypatch: pytest.MonkeyPatch, event: Callable[[], object]) -> None:
    """Let something happen once, right before a fence is committed."""
    commit, events = SqlPointer.commit, iter([event])

    def late(pointer: SqlPointer, held: Held, fence: Fence) -> bool:
        for one in events:
            one()
        return commit(pointer, held, fence)

    monkeypatch.setattr(SqlPointer, "commit", late)


def test_a_table_that_moves_at_every_look_is_left_open(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty looks are enough for one settler."""
    bench.claim()
    tries: list[Fence] = []

    def late(_: SqlPointer, __: Held, fence: Fence) -> bool:
        tries.append(fence)
        return False

    monkeypatch.setattr(SqlPointer, "commit", late)
    with pytest.raises(UnknownOutcomeError, match="could not be fenced off in time"):
        bench.settle()
    assert len(tries) == 50
    assert bench.document.status is Status.IN_PROGRESS


def test_without_time_nothing_is_asked(bench: Bench) -> None:
    """The settler's own deadline comes first."""
    held = bench.claim()
    table = IcebergTable(bench.name, bench.pointer(), bench.clock, may_go_on=lambda: False)
    with pytest.raises(StoreError, match="in time"):
        table.next_move(held.document, Intent("killed", undo=False, nothing_sent=False))


@pytest.mark.parametrize(("age_ms", "decided"), [(6 * DAY_MS, True), (6 * DAY_MS + 1, False)])
def test_an_attempt_is_judged_by_its_missing_mark_for_six_days(bench: Bench, age_ms: int, *, decided: bool) -> None:
    """Later others may have removed the mark, and the table does not tell."""
    bench.claim()
    bench.now_ms += age_ms
    if decided:
        assert bench.settle().status is Status.ROLLED_BACK
    else:
        with pytest.raises(UnknownOutcomeError, match="may have forgotten"):
            bench.settle()
        assert bench.document.status is Status.UNKNOWN


def test_a_fence_of_long_ago_proves_nothing(bench: Bench) -> None:
    """It may have come right after a publication of which the mark was removed since."""
    held = bench.claim()
    bench.table().next_move(held.document, Intent("killed", undo=False, nothing_sent=False))
    bench.now_ms += 6 * DAY_MS + 1
    with pytest.raises(UnknownOutcomeError, match="may have forgotten"):
        bench.settle()


def test_an_old_attempt_is_still_known_by_its_mark(bench: Bench) -> None:
    """It says what came of it, whatever its age."""
    bench.publish(bench.claim())
    bench.now_ms += 100 * DAY_MS
    assert bench.settle().status is Status.COMMITTED


@pytest.mark.parametrize("recreated", [False, True])
def test_another_table_than_the_one_that_was_claimed_tells_nothing(bench: Bench, *, recreated: bool) -> None:
    """It was dropped, and perhaps made anew."""
    bench.claim()
    bench.catalog.drop_table("db.t")
    if recreated:
        bench.create()
        bench.add("main", "foreign-1")
    with pytest.raises(UnknownOutcomeError, match="was dropped"):
        bench.settle()
    assert bench.document.status is Status.UNKNOWN


def test_a_mark_that_cannot_be_read_is_left_to_a_person(bench: Bench) -> None:
    """Somebody has set the property by hand, or a version to come."""
    held = bench.claim()
    with bench.load().transaction() as change:
        change.set_properties({f"safewriter.{name_of(held.document.attempt)}": "yes"})
    with pytest.raises(UnknownOutcomeError, match="is no mark"):
        bench.settle()


def test_a_write_to_a_branch_that_is_gone_is_fenced_off_on_main(bench: Bench) -> None:
    """Its publication finds no branch; the fence is for one that is made anew."""
    held = bench.claim()
    pointer = bench.pointer()
    table = IcebergTable(bench.name.parse("lite.db.t.branch_gone"), pointer, bench.clock, may_go_on=lambda: True)
    move = table.next_move(held.document, Intent("killed", undo=False, nothing_sent=False))
    assert move.status is Status.ROLLED_BACK
    assert bench.refs()[name_of(held.document.attempt)] == bench.refs()["main"]


def test_a_table_that_was_replaced_bears_the_fence_on_its_last_snapshot(bench: Bench) -> None:
    """`CREATE OR REPLACE TABLE` without rows leaves a table without main, and keeps its snapshots."""
    held = bench.claim()
    snapshots = [{"snapshot-id": number, "timestamp-ms": bench.clock()} for number in (5, 6)]

    class Replaced(Pointer):
        refs: dict[str, Any] = {}  # noqa: RUF012 - of this test alone

        def _read(self) -> Held:
            table = {"table-uuid": held.document.attempt.table_id, "snapshots": snapshots, "current-snapshot-id": -1}
            return Held({**table, "refs": self.refs}, None)

        def _commit(self, _: Held, fence: Fence) -> bool:
            self.refs[fence.name] = fence.tag
            return True

    pointer = Replaced(bench.name, lambda: None)
    table = IcebergTable(bench.name, pointer, bench.clock, may_go_on=lambda: True)
    move = table.next_move(held.document, Intent("killed", undo=False, nothing_sent=False))
    assert move.status is Status.ROLLED_BACK
    assert [tag["snapshot-id"] for tag in Replaced.refs.values()] == [6]


def test_a_table_without_a_snapshot_can_bear_no_fence(bench: Bench) -> None:
    """A block gives an empty table its first one; here somebody has made the table anew under the same id."""
    held = bench.claim()
    empty = Held({"table-uuid": held.document.attempt.table_id, "properties": {}, "refs": {}}, None)

    class Empty(Pointer):
        def _read(self) -> Held:
            return empty

        def _commit(self, *_: Any) -> bool:
            raise AssertionError

    table = IcebergTable(bench.name, Empty(bench.name, lambda: None), bench.clock, may_go_on=lambda: True)
    with pytest.raises(RetentionGapError, match="no snapshot"):
        table.next_move(held.document, Intent("killed", undo=False, nothing_sent=False))


def test_a_rehearsal_notes_the_fence_and_does_not_set_it(bench: Bench) -> None:
    """The verdict is the one that the settler would reach if no publication comes first."""
    held, before, noted = bench.claim(), bench.load(), list[str]()
    name, intent = name_of(held.document.attempt), Intent("killed", undo=False, nothing_sent=False)
    table = IcebergTable(bench.name, bench.pointer(), bench.clock, lambda: True, noted)
    assert table.next_move(held.document, intent).status is Status.ROLLED_BACK
    assert noted == [f"COMMIT lite.db.t: tag {name} on snapshot {bench.refs()['main']}"]
    assert bench.load().metadata_location == before.metadata_location

    snapshot = bench.publish(held)
    move = table.next_move(held.document, intent)
    assert move.landed is not None
    assert move.landed.commit_version == snapshot
    assert len(noted) == 1


# -- success() ---------------------------------------------------------------------------------------------------------


def test_success_is_committed_when_the_mark_is_there(bench: Bench) -> None:
    """What was published is read back from the catalog."""
    held = bench.claim()
    snapshot = bench.publish(held)
    move = bench.table().confirm(held.document, SENT)
    assert (move.status, move.landed) == (Status.COMMITTED, Landed(snapshot, 10, 7))


def test_success_without_anything_to_publish_is_no_change(bench: Bench) -> None:
    """The table is not asked."""
    held = bench.claim()
    bench.catalog.drop_table("db.t")
    move = bench.table().confirm(held.document, UNSENT)
    assert (move.status, move.reason) == (Status.COMMITTED, NO_CHANGE)


def test_success_fences_off_what_has_not_arrived(bench: Bench) -> None:
    """Then it is certain that it never will."""
    held = bench.claim()
    with pytest.raises(NotCommittedError, match="cannot any more"):
        bench.table().confirm(held.document, SENT)
    assert name_of(held.document.attempt) in bench.refs()


# -- writes without a document -----------------------------------------------------------------------------------------


def test_a_write_without_a_document_is_known_by_its_mark(bench: Bench) -> None:
    """Its epoch is in the attempt's name."""
    held = bench.claim()
    snapshot = bench.publish(held)
    found = bench.table().trace(bench.write.key, bench.now_ms)
    assert found == Trace(1, Landed(snapshot, 10, 7), succeeded=True)


def test_of_several_attempts_the_mark_of_the_highest_epoch_counts(bench: Bench) -> None:
    """Also beside fences of higher ones."""
    key = bench.write.key[:15]
    nonce = "0123456789abcdef"
    with bench.load().transaction() as change:
        change.set_properties({f"safewriter.{key}-{epoch}-{nonce}": f"{epoch} 1 1 1" for epoch in (2, 10, 9)})
    assert bench.table().trace(bench.write.key, bench.now_ms) == Trace(10, Landed(10, 1, 1), succeeded=True)


def test_a_write_without_a_document_is_known_by_its_fences(bench: Bench) -> None:
    """Each of them says that nothing was published."""
    bench.claim()
    bench.settle()
    assert bench.table().trace(bench.write.key, bench.now_ms) == Trace(1)
    with bench.load().manage_snapshots() as change:
        for epoch in (3, 2):
            change.create_tag(bench.refs()["main"], f"{bench.write.key[:15]}-{epoch}-0123456789abcdef")
    assert bench.table().trace(bench.write.key, bench.now_ms) == Trace(3)


def test_marks_and_fences_of_other_writes_tell_nothing(bench: Bench) -> None:
    """Nor do names that only begin or end alike, or a property of somebody else's."""
    key, nonce = bench.write.key[:15], "0123456789abcdef"
    names = [f"sw-ffffffffffff-1-{nonce}", f"{key}-1-{nonce}0", f"x{key}-1-{nonce}", f"{key}-skipped-{nonce}"]
    with bench.load().transaction() as change:
        change.set_properties({f"safewriter.{name}": "1 1 1 1" for name in names})
        change.set_properties({f"{key}-1-{nonce}": "1 1 1 1"})
    assert bench.table().trace(bench.write.key, bench.now_ms) is None


def test_a_table_that_is_gone_does_not_tell(bench: Bench) -> None:
    """It may be registered again, with the write in it."""
    bench.catalog.drop_table("db.t")
    with pytest.raises(RetentionGapError, match="dropped"):
        bench.table().trace(bench.write.key, bench.now_ms)


@pytest.mark.parametrize(("age_ms", "decided"), [(6 * DAY_MS, True), (6 * DAY_MS + 1, False)])
def test_a_write_of_which_nothing_is_known_is_judged_for_six_days(bench: Bench, age_ms: int, *, decided: bool) -> None:
    """As an attempt is."""
    since_ms = bench.now_ms - age_ms
    if decided:
        assert bench.table().trace(bench.write.key, since_ms) is None
    else:
        with pytest.raises(RetentionGapError, match="may have forgotten"):
            bench.table().trace(bench.write.key, since_ms)


def test_nothing_is_deleted_by_name(bench: Bench) -> None:
    """`remove_orphan_files` takes what no snapshot names."""
    held: HeldCheckpoint = bench.claim()
    assert bench.table().remove_leftovers(held.document, held.document.attempts) == 0
