"""What others do by hand to a table between an attempt and its clean-up: no file that any snapshot names is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.objects.location import Location
from safewriter.objects.store import StoreError
from safewriter.recovery import Cause
from safewriter.state import CommitPoint, Status
from safewriter.tables.iceberg.publishing import forget
from safewriter.tables.iceberg.staging import SOURCE, branch_of
from scripts.emulator.iceberg_writer import add

if TYPE_CHECKING:
    from tests.unit.safewriter.tables.iceberg.bench import Bench


def cherry_pick(bench: Bench, staged: int, name: str = "ours") -> None:
    """Append to main what is staged, as Iceberg's procedure does."""
    table = bench.catalog.load_table("db.t")
    add(table, "main", f"{table.metadata.location}/data/{name}.parquet", marks={SOURCE: str(staged)})


@pytest.mark.parametrize(("commit_point", "refused"), [(CommitPoint.WRITE, False), (CommitPoint.SUCCESS, True)])
def test_what_somebody_has_cherry_picked_is_published(bench: Bench, commit_point: CommitPoint, refused: object) -> None:
    """It is in main once, and its files stay; an undo, which would take others' rows along, is refused."""
    staged = bench.stage(bench.claim(commit_point))
    bench.add("main", "foreign-1")
    cherry_pick(bench, staged)
    bench.add("main", "foreign-2")
    document = bench.settle()
    assert (document.status, bench.rows()) == (Status.COMMITTED, 40)
    assert bool(document.undo_refused) is refused
    bench.grace_passes()
    bench.recovery().clean(bench.write.key)
    assert set(bench.load().metadata.refs) == {"main"}
    bench.check()


def test_files_that_a_later_snapshot_carries_on_stay_when_those_before_it_are_gone(bench: Bench) -> None:
    """Somebody has expired one of the write's two snapshots by its id: nothing leads to the other one any more."""
    held = bench.claim()
    bench.stage(held, "ours-1")
    second = bench.stage(held, "ours-2")
    assert bench.settle().status is Status.COMMITTED
    bench.add("main", "foreign-1")
    assert forget(bench.one(), bench.load(), [second])
    bench.grace_passes()
    bench.recovery().clean(bench.write.key)
    assert bench.rows() == 40
    assert {"ours-1", "ours-2"} <= bench.data()
    bench.check()


def test_a_file_that_is_not_on_s3_is_nobodys_of_ours(bench: Bench) -> None:
    """A table may have been moved here, and name files elsewhere."""
    held = bench.claim()
    bench.stage(held)
    add(bench.catalog.load_table("db.t"), "main", "hdfs://old/x.parquet")
    folder = Location.parse(f"{bench.load().metadata.location}/data").key
    bench.lake.put(f"{folder}/{branch_of(held.document.attempt)}-00000-7-x.parquet", b"parquet")
    assert bench.settle(Cause.EXCEPTION).status is Status.ROLLED_BACK
    assert bench.data() == {"foreign-0"}


def test_a_manifest_that_is_gone_leaves_the_clean_up_to_a_later_look(bench: Bench) -> None:
    """Others may expire snapshots at this moment; the verdict stands, and nothing else is held up."""
    bench.stage(bench.claim())
    bench.add("main", "foreign-1")
    bench.lake.delete(Location.parse(bench.main()[-1].manifest_list).key)
    assert bench.settle(Cause.EXCEPTION).status is Status.ROLLED_BACK
    bench.grace_passes()
    with pytest.raises(StoreError, match="could not be cleaned up"):
        bench.recovery().clean(bench.write.key)
    assert not bench.document.attempt.cleaned
