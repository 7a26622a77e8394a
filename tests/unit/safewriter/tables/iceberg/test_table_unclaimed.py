"""A write without a document is judged by its mark and its fences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.tables.table import Landed, Trace, UndecidableError
from tests.unit.safewriter.tables.iceberg.bench import DAY_MS

if TYPE_CHECKING:
    from tests.unit.safewriter.tables.iceberg.bench import Bench


def test_a_write_without_a_document_is_known_by_its_mark(bench: Bench) -> None:
    """Its epoch is in the attempt's name."""
    held = bench.claim()
    snapshot = bench.publish(held)
    found = bench.table().trace(bench.write.key, bench.now_ms)
    assert found == Trace(1, Landed(snapshot, 10, 7), succeeded=True)


def test_a_write_without_a_document_is_known_by_its_snapshot(bench: Bench) -> None:
    """Its mark was unset, or its catalog drops properties that it does not know."""
    held = bench.claim()
    snapshot = bench.publish(held)
    bench.unset_mark(held)
    found = bench.table().trace(bench.write.key, bench.now_ms)
    assert found == Trace(1, Landed(snapshot, 10, 7), succeeded=True)


def test_of_several_attempts_the_mark_of_the_highest_epoch_counts(bench: Bench) -> None:
    """Also beside fences of higher ones."""
    key = bench.write.key
    nonce = "0123456789abcdef"
    with bench.load().transaction() as change:
        change.set_properties({f"safewriter.{key}-{epoch}-{nonce}": f"{epoch} 1 1 1" for epoch in (2, 10, 9)})
    assert bench.table().trace(bench.write.key, bench.now_ms) == Trace(10, Landed(10, 1, 1), succeeded=True)


def test_a_write_without_a_document_is_known_by_its_fences(bench: Bench) -> None:
    """Each of them proves that nothing was published."""
    bench.claim()
    bench.settle()
    assert bench.table().trace(bench.write.key, bench.now_ms) == Trace(1)
    with bench.load().manage_snapshots() as change:
        for epoch in (3, 2):
            change.create_tag(bench.refs()["main"], f"{bench.write.key}-{epoch}-0123456789abcdef")
    assert bench.table().trace(bench.write.key, bench.now_ms) == Trace(3)


def test_marks_and_fences_of_other_writes_tell_nothing(bench: Bench) -> None:
    """Nor do names that only begin or end alike, or a foreign property."""
    key, nonce = bench.write.key, "0123456789abcdef"
    names = [f"sw-ffffffffffff-1-{nonce}", f"{key}-1-{nonce}0", f"x{key}-1-{nonce}", f"{key}-skipped-{nonce}"]
    names.append(f"{key[:15]}{'f' * 20}-1-{nonce}")
    with bench.load().transaction() as change:
        change.set_properties({f"safewriter.{name}": "1 1 1 1" for name in names})
        change.set_properties({f"{key}-1-{nonce}": "1 1 1 1"})
    assert bench.table().trace(bench.write.key, bench.now_ms) is None


def test_a_write_that_the_session_has_seen_is_looked_for_whatever_its_age(bench: Bench) -> None:
    """If the metadata no longer shows it, nothing is decided: somebody has changed the table meanwhile."""
    with pytest.raises(UndecidableError, match="has named this write, and does not any more"):
        bench.table().trace_from(bench.write.key, 0)
    with bench.load().transaction() as change:
        change.set_properties({f"safewriter.{bench.write.key}-3-0123456789abcdef": "7 20 200 1"})
    assert bench.table().trace_from(bench.write.key, 0) == Trace(3, Landed(7, 20, 200), succeeded=True)


def test_a_table_that_is_gone_does_not_tell(bench: Bench) -> None:
    """It may be registered again, with the write in it."""
    bench.catalog.drop_table("db.t")
    with pytest.raises(UndecidableError, match="dropped"):
        bench.table().trace(bench.write.key, bench.now_ms)


@pytest.mark.parametrize(("age_ms", "decided"), [(6 * DAY_MS, True), (6 * DAY_MS + 1, False)])
def test_a_write_of_which_nothing_is_known_is_judged_for_six_days(bench: Bench, age_ms: int, *, decided: bool) -> None:
    """Later its mark may have been removed, as with an attempt that has a document."""
    since_ms = bench.now_ms - age_ms
    if decided:
        assert bench.table().trace(bench.write.key, since_ms) is None
    else:
        with pytest.raises(UndecidableError, match="may have forgotten"):
            bench.table().trace(bench.write.key, since_ms)
