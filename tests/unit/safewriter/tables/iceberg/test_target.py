"""A write for a branch of the table: staged, published and dropped as for main, which it never touches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.update import RemoveSnapshotRefUpdate, SetSnapshotRefUpdate

from safewriter.errors import UnknownOutcomeError
from safewriter.recovery import Cause
from safewriter.state import Status
from safewriter.tables.iceberg.name import TableName
from safewriter.tables.iceberg.staging import branch_of
from tests.unit.safewriter.tables.iceberg.bench import Bench

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.table.update import TableUpdate


class BranchBench(Bench):
    """The bench, with attempts that write to the branch `audit`, which begins where main is and has ten rows more."""

    name = TableName.parse("lite.db.t.branch_audit")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BranchBench:
    made = BranchBench(tmp_path, monkeypatch)
    made.load().manage_snapshots().create_branch(made.main()[-1].snapshot_id, "audit").commit()
    made.add("audit", "audit-0")
    return made


@pytest.mark.parametrize("operation", ["append", "overwrite"])
def test_what_is_staged_becomes_the_branchs(bench: Bench, operation: str) -> None:
    """And main shows what it showed."""
    staged = bench.stage(bench.claim(), operation=operation)
    assert bench.settle().status is Status.COMMITTED
    assert (bench.main("audit")[-1].snapshot_id, bench.rows("audit"), bench.rows()) == (staged, 30, 10)
    assert set(bench.load().metadata.refs) == {"main", "audit"}
    bench.check()


def test_what_is_not_to_count_is_dropped_with_its_files(bench: Bench) -> None:
    """Neither branch nor main shows anything of it."""
    bench.stage(bench.claim())
    assert bench.settle(Cause.EXCEPTION).status is Status.ROLLED_BACK
    assert (bench.rows("audit"), bench.rows(), bench.data()) == (20, 10, {"foreign-0", "audit-0"})
    bench.check()


def test_an_append_is_applied_again_on_a_branch_that_has_moved(bench: Bench) -> None:
    """Whoever was first keeps their rows; that main has moved meanwhile is of no importance."""
    bench.stage(bench.claim())
    bench.add("audit", "audit-1")
    bench.add("main", "foreign-1")
    assert bench.settle().status is Status.COMMITTED
    assert (bench.rows("audit"), bench.rows()) == (40, 20)
    bench.check()


def test_a_rewrite_fails_on_a_branch_that_has_moved(bench: Bench) -> None:
    """It would have to be computed anew."""
    bench.stage(bench.claim(), operation="overwrite")
    bench.add("audit", "audit-1")
    document = bench.settle()
    assert (document.status, bench.rows("audit")) == (Status.ROLLED_BACK, 30)
    assert document.reason is not None
    assert "audit has moved on" in document.reason


def test_nothing_is_published_to_a_branch_that_is_gone(bench: Bench) -> None:
    """Whoever has dropped it wants none of its rows."""
    bench.stage(bench.claim())
    bench.load().manage_snapshots().remove_branch("audit").commit()
    document = bench.settle()
    assert (document.status, bench.rows()) == (Status.ROLLED_BACK, 10)
    assert document.reason is not None
    assert "the branch audit is gone" in document.reason
    assert set(bench.load().metadata.refs) == {"main"}


def test_what_was_published_is_found_in_main_when_the_branch_has_become_main(bench: Bench) -> None:
    """The usual end of an audit: main is set to the branch, which is dropped."""
    staged = bench.publish_and_die()
    bench.load().manage_snapshots().set_current_snapshot(staged).commit()
    bench.load().manage_snapshots().remove_branch("audit").commit()
    assert bench.settle().status is Status.COMMITTED
    assert bench.rows() == 30


def test_what_a_branch_has_shown_that_is_gone_is_unknown(bench: Bench) -> None:
    """Whether it was published there, nothing tells any more."""
    bench.publish_and_die()
    bench.load().manage_snapshots().remove_branch("audit").commit()
    with pytest.raises(UnknownOutcomeError, match="audit is gone"):
        bench.settle()
    assert bench.document.status is Status.UNKNOWN


@pytest.mark.parametrize("replaces", [True, False])
def test_main_is_put_back_if_the_blocks_statement_has_taken_it_away(bench: Bench, replaces: object) -> None:
    """What a replacement of the whole table does, in the commit that writes to the branch; what others take away stays
    away, since they may have taken back what they had created.
    """
    held = bench.claim()
    bench.add("main", "foreign-1")
    first = bench.stage(held)
    bench.stage(held, "more")
    updates: list[TableUpdate] = [RemoveSnapshotRefUpdate(ref_name="main")]
    if replaces:
        updates.append(
            SetSnapshotRefUpdate(
                ref_name=branch_of(held.document.attempt),
                type=SnapshotRefType.BRANCH,
                snapshot_id=first,
                max_ref_age_ms=None,
                max_snapshot_age_ms=None,
                min_snapshots_to_keep=None,
            )
        )
    assert bench.one().commit(bench.load(), [], updates)
    bench.settle(Cause.EXCEPTION)
    assert [bench.rows(one) for one in sorted(bench.load().metadata.refs)] == ([20, 20] if replaces else [20])
    bench.check()
