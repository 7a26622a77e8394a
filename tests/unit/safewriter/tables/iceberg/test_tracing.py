"""What an Iceberg table tells of a write that has no document."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyiceberg.table.update import RemoveSnapshotsUpdate

from safewriter.looking import Action, close_unclaimed
from safewriter.recovery import Cause
from safewriter.state import Status
from safewriter.tables.iceberg.table import IcebergTable
from safewriter.tables.table import RetentionGapError

if TYPE_CHECKING:
    from safewriter.tables.table import Trace
    from tests.unit.safewriter.tables.iceberg.bench import Bench


def trace(bench: Bench, since_ms: int = 0) -> Trace | None:
    return IcebergTable(bench.one()).trace(bench.write.key, since_ms)


def test_what_is_published_is_found_without_a_document(bench: Bench) -> None:
    """By the mark of its snapshot, whatever its epoch."""
    published = bench.publish_and_die()
    bench.add("main", "foreign-1")
    found = trace(bench)
    assert found is not None
    assert found.landed is not None
    assert (found.epoch, found.landed.commit_version, found.landed.rows) == (1, published, 10)


def test_nothing_of_a_write_is_found_in_a_whole_history(bench: Bench) -> None:
    """Others have written, and main is known down to its first snapshot."""
    bench.add("main", "foreign-1")
    assert trace(bench) is None


def test_a_table_that_is_not_there_holds_nothing(bench: Bench) -> None:
    """The attempt was to create it, and died before."""
    bench.catalog.drop_table(bench.name.identifier)
    assert trace(bench) is None


@pytest.mark.parametrize("staged", [False, True])
def test_what_is_only_staged_decides_nothing(bench: Bench, *, staged: bool) -> None:
    """It may have been picked to be published; whether the program has failed nobody knows."""
    held = bench.claim()
    if staged:
        bench.stage(held)
    with pytest.raises(RetentionGapError, match="is of this write and not in main"):
        trace(bench)


def test_a_history_that_does_not_reach_back_decides_nothing(bench: Bench) -> None:
    """Snapshots were expired since the write began; one that is older than the write is enough."""
    first = bench.main()[0].snapshot_id
    bench.add("main", "foreign-1")
    last = bench.main()[-1]
    table = bench.load()
    assert bench.one().commit(table, [], [RemoveSnapshotsUpdate(snapshot_ids=[first])])
    with pytest.raises(RetentionGapError, match="expired"):
        trace(bench, last.timestamp_ms)
    assert trace(bench, last.timestamp_ms + 3_600_000) is None


def test_a_published_write_whose_document_has_expired_is_committed(bench: Bench) -> None:
    """The marker says how its catalog is reached."""
    bench.publish_and_die()
    (mark,) = bench.checkpoints.markers_of(bench.write.key)
    announced = bench.checkpoints.announced(mark)
    assert announced is not None
    announced.marker.catalog.update(bench.properties)
    bench.checkpoints.mark(announced.marker)
    bench.grace_passes()
    bench.bucket.delete(f"checkpoints/{bench.write.key}.json")

    found = close_unclaimed(bench.checkpoints, bench.recovery(), bench.write.key, Cause.SWEEPER, bench.clock)
    assert found.action is Action.SETTLED
    assert bench.document.status is Status.COMMITTED
