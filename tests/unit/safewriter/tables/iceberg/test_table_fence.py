"""Where a fence lies, how long it lives, and what may come between it and the read before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.table.refs import SnapshotRefType

from safewriter.errors import UnknownOutcomeError
from safewriter.record.document import Status
from safewriter.tables.iceberg import space
from safewriter.tables.iceberg.metadata import LiveTable
from safewriter.tables.iceberg.pointer import Pointer
from safewriter.tables.iceberg.sql import SqlPointer
from safewriter.tables.iceberg.table import IcebergTable, name_of
from safewriter.tables.table import Intent, UndecidableError
from tests.unit.safewriter.tables.iceberg.bench import DAY_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.tables.iceberg.metadata import FenceTag
    from tests.unit.safewriter.tables.iceberg.bench import Bench


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


def test_a_fenced_attempt_is_rolled_back_again_without_another_fence(bench: Bench) -> None:
    """The settler before died between the fence and the document."""
    held = bench.claim()
    bench.table().next_move(held.document, Intent("killed", undo=False, nothing_sent=False))
    before = bench.load().metadata_location
    assert bench.settle().status is Status.ROLLED_BACK
    assert bench.load().metadata_location == before


def test_a_publication_that_comes_between_look_and_fence_counts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the fence lands after it or loses, the next read finds the mark."""
    held = bench.claim()
    _first(monkeypatch, lambda: bench.publish(held))
    assert bench.settle().status is Status.COMMITTED
    assert set(bench.refs()) == {"main"}


def test_a_foreign_commit_between_look_and_fence_only_delays_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fence then lies on main's new snapshot."""
    held = bench.claim()
    _first(monkeypatch, lambda: bench.add("main", "foreign-1"))
    assert bench.settle().status is Status.ROLLED_BACK
    refs = bench.refs()
    assert refs[name_of(held.document.attempt)] == refs["main"]
    assert bench.rows() == 20


def _first(monkeypatch: pytest.MonkeyPatch, event: Callable[[], object]) -> None:
    """Run something once, right before a fence is committed."""
    commit, events = SqlPointer.commit, iter([event])

    def late(pointer: SqlPointer, held: LiveTable, fence: FenceTag) -> bool:
        for one in events:
            one()
        return commit(pointer, held, fence)

    monkeypatch.setattr(SqlPointer, "commit", late)


def test_a_table_that_moves_at_every_look_is_left_open(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """One settler tries fifty times."""
    bench.claim()
    tries: list[FenceTag] = []

    def late(_: SqlPointer, __: LiveTable, fence: FenceTag) -> bool:
        tries.append(fence)
        return False

    monkeypatch.setattr(SqlPointer, "commit", late)
    with pytest.raises(UnknownOutcomeError, match="could not be fenced off in time"):
        bench.settle()
    assert len(tries) == 50
    assert bench.document.status is Status.IN_PROGRESS


def test_a_write_to_a_branch_that_is_gone_is_fenced_off_on_main(bench: Bench) -> None:
    """Its publication finds no branch; the fence is for a branch that is made again."""
    held = bench.claim()
    pointer = bench.pointer()
    table = IcebergTable(
        bench.name.parse("lite.db.t.branch_gone"), pointer, bench.clock, lambda: True, bench.table_store
    )
    move = table.next_move(held.document, Intent("killed", undo=False, nothing_sent=False))
    assert move.status is Status.ROLLED_BACK
    assert bench.refs()[name_of(held.document.attempt)] == bench.refs()["main"]


def test_a_table_that_was_replaced_bears_the_fence_on_its_last_snapshot(bench: Bench) -> None:
    """`CREATE OR REPLACE TABLE` without rows leaves a table without main, and keeps its snapshots."""
    held = bench.claim()
    seen = held.document.attempt
    snapshots = [{"snapshot-id": number, "timestamp-ms": bench.clock()} for number in (5, 6)]

    class Replaced(Pointer):
        refs: dict[str, Any] = {}  # noqa: RUF012 - of this test alone

        def _read(self) -> LiveTable:
            table = {"table-uuid": seen.table_id, "last-sequence-number": seen.sequence, "current-snapshot-id": -1}
            return LiveTable({**table, "snapshots": snapshots, "refs": self.refs}, None)

        def _commit(self, _: LiveTable, fence: FenceTag) -> bool:
            self.refs[fence.name] = fence.tag
            return True

    pointer = Replaced(bench.name, lambda: None)
    table = IcebergTable(bench.name, pointer, bench.clock, lambda: True, bench.table_store)
    move = table.next_move(held.document, Intent("killed", undo=False, nothing_sent=False))
    assert move.status is Status.ROLLED_BACK
    assert [tag["snapshot-id"] for tag in Replaced.refs.values()] == [6]


def test_a_table_without_a_snapshot_can_bear_no_fence(bench: Bench) -> None:
    """A block gives an empty table its first one; here the table was recreated under the same id."""
    held = bench.claim()
    seen = held.document.attempt
    empty = LiveTable({"table-uuid": seen.table_id, "last-sequence-number": seen.sequence, "refs": {}}, None)

    class Empty(Pointer):
        def _read(self) -> LiveTable:
            return empty

        def _commit(self, *_: Any) -> bool:
            raise AssertionError

    table = IcebergTable(bench.name, Empty(bench.name, lambda: None), bench.clock, lambda: True, bench.table_store)
    with pytest.raises(UndecidableError, match="no snapshot"):
        table.next_move(held.document, Intent("killed", undo=False, nothing_sent=False))


def test_a_rehearsal_notes_the_fence_and_does_not_set_it(bench: Bench) -> None:
    """The verdict is the one of a real settler if no publication comes first."""
    held, before, noted = bench.claim(), bench.load(), list[str]()
    name, intent = name_of(held.document.attempt), Intent("killed", undo=False, nothing_sent=False)
    table = IcebergTable(bench.name, bench.pointer(), bench.clock, lambda: True, bench.table_store, noted)
    assert table.next_move(held.document, intent).status is Status.ROLLED_BACK
    assert noted == [f"COMMIT lite.db.t: tag {name} on snapshot {bench.refs()['main']}"]
    assert bench.load().metadata_location == before.metadata_location

    snapshot = bench.publish(held)
    move = table.next_move(held.document, intent)
    assert move.landed is not None
    assert move.landed.commit_version == snapshot
    assert len(noted) == 1


def test_a_settling_reads_the_metadata_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """For verdict, fence and clean-up together; after them nothing of it stays in memory."""
    held = bench.claim()
    bench.lake.put(f"w/db/t/data/{name_of(held.document.attempt)}/left.parquet", b"")
    read: list[str] = []
    get = bench.lake.get

    def noted(key: str, **more: Any) -> Any:
        read.append(key)
        return get(key, **more)

    monkeypatch.setattr(bench.lake, "get", noted)
    assert bench.settle(requests_ended=True).attempt.files_removed == 1
    assert sum(key.endswith(".metadata.json") for key in read) == 1
    assert not space._held.kept
