"""What a table's metadata tells of a write when others have expired or dropped what would tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.errors import NotCommittedError, UnknownOutcomeError
from safewriter.state import Status
from safewriter.tables.iceberg.publishing import forget
from safewriter.tables.iceberg.session import StagingState

if TYPE_CHECKING:
    from tests.unit.safewriter.tables.iceberg.bench import Bench


@pytest.fixture
def new(bench: Bench) -> Bench:
    """A table without a snapshot. pyiceberg says of a snapshot whose parent it has expired that it has none."""
    bench.catalog.drop_table("db.t")
    bench.create()
    return bench


def test_a_first_snapshot_that_was_expired_is_not_taken_for_none(new: Bench) -> None:
    """It was published, and main still shows its rows: never rolled_back."""
    held = new.claim()
    staged = new.commit(held)
    new.checkpoints.replace(held, held.document.moved(Status.PUBLISHING, commit_version=staged))
    new.add("main", "foreign-1")
    assert forget(new.one(), new.load(), [staged])
    with pytest.raises(UnknownOutcomeError, match="expired"):
        new.settle()
    assert (new.document.status, new.rows()) == (Status.UNKNOWN, 20)


def test_rows_that_went_to_another_branch_are_no_success(bench: Bench) -> None:
    """The block's own branch holds nothing, and what is elsewhere was guarded by nobody."""
    bench.load().manage_snapshots().create_branch(bench.main()[-1].snapshot_id, "audit").commit()
    held = bench.claim()
    bench.commit(held, "audit")
    with pytest.raises(NotCommittedError, match="went into audit"):
        bench.recovery().tables.open(held.document).confirm(held.document, StagingState(passed=True))
