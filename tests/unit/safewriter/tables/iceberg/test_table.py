"""The settler of an Iceberg write judges it by its mark, fences it by a tag, and cleans up its files alone."""

from __future__ import annotations

import dataclasses
import uuid
from typing import TYPE_CHECKING

import pytest

from safewriter.errors import NotCommittedError, UnknownOutcomeError, UnsupportedError
from safewriter.objects.location import Location
from safewriter.objects.store import StoreError, Upload
from safewriter.record.document import BY_HAND, CommitPoint, Status
from safewriter.settle.recovery import Cause
from safewriter.tables.iceberg.session import StagingState
from safewriter.tables.iceberg.table import IcebergTable, name_of
from safewriter.tables.table import Intent, Landed, UndecidableError
from tests.unit.safewriter.tables.iceberg.bench import DAY_MS, contents

if TYPE_CHECKING:
    from safewriter.record.checkpoints import HeldCheckpoint
    from tests.unit.safewriter.tables.iceberg.bench import Bench

SENT, UNSENT = StagingState(passed=True, answered=True), StagingState(passed=False, answered=True)


@pytest.mark.parametrize("cause", [Cause.KILLED, Cause.EXCEPTION, Cause.SWEEPER])
@pytest.mark.parametrize("commit_point", CommitPoint)
def test_what_bears_its_mark_is_committed(bench: Bench, cause: Cause, commit_point: CommitPoint) -> None:
    """Only `success()` publishes, so nothing is left to decide, whoever settles."""
    snapshot = bench.publish(bench.claim(commit_point))
    document = bench.settle(cause)
    assert (document.status, document.attempt.commit_version, document.attempt.rows) == ("committed", snapshot, 10)
    assert document.attempt.bytes == 7
    assert set(bench.refs()) == {"main"}


@pytest.mark.parametrize("commit_point", CommitPoint)
def test_what_bears_none_is_fenced_off_and_rolled_back(bench: Bench, commit_point: CommitPoint) -> None:
    """The fence is a tag of the attempt's name on main's snapshot; main itself stays as it is."""
    held = bench.claim(commit_point)
    before = bench.refs()["main"]
    assert bench.settle().status is Status.ROLLED_BACK
    assert bench.refs() == {"main": before, name_of(held.document.attempt): before}
    assert bench.rows() == 10


def test_where_nothing_was_sent_the_table_is_not_asked(bench: Bench) -> None:
    """Nothing can arrive, so no fence is needed, and a catalog that is down is no obstacle."""
    bench.claim()
    bench.catalog.drop_table("db.t")
    assert bench.settle(nothing_sent=True).status is Status.ROLLED_BACK


def test_without_time_nothing_is_asked(bench: Bench) -> None:
    """The settler's own deadline comes first."""
    held = bench.claim()
    table = IcebergTable(bench.name, bench.pointer(), bench.clock, lambda: False, bench.table_store)
    with pytest.raises(StoreError, match="in time"):
        table.next_move(held.document, Intent("killed", undo=False, nothing_sent=False))


@pytest.mark.parametrize(("age_ms", "decided"), [(6 * DAY_MS, True), (6 * DAY_MS + 1, False)])
def test_an_attempt_is_judged_by_its_missing_mark_for_six_days(bench: Bench, age_ms: int, *, decided: bool) -> None:
    """Later the mark may have been removed, and the table does not decide."""
    bench.claim()
    bench.now_ms += age_ms
    if decided:
        assert bench.settle().status is Status.ROLLED_BACK
    else:
        with pytest.raises(UnknownOutcomeError, match="may have forgotten"):
            bench.settle()
        assert bench.document.status is Status.UNKNOWN


def test_a_fence_of_long_ago_proves_nothing(bench: Bench) -> None:
    """It may have come after a publication whose mark was removed since."""
    held = bench.claim()
    bench.table().next_move(held.document, Intent("killed", undo=False, nothing_sent=False))
    bench.now_ms += 6 * DAY_MS + 1
    with pytest.raises(UnknownOutcomeError, match="may have forgotten"):
        bench.settle()


def test_an_old_attempt_is_still_known_by_its_mark(bench: Bench) -> None:
    """The mark decides, whatever the attempt's age."""
    bench.publish(bench.claim())
    bench.now_ms += 100 * DAY_MS
    assert bench.settle().status is Status.COMMITTED


@pytest.mark.parametrize("recreated", [False, True])
def test_another_table_than_the_one_that_was_claimed_tells_nothing(bench: Bench, *, recreated: bool) -> None:
    """It was dropped, and perhaps recreated."""
    bench.claim()
    bench.catalog.drop_table("db.t")
    if recreated:
        bench.create()
        bench.add("main", "foreign-1")
    with pytest.raises(UnknownOutcomeError, match="was dropped"):
        bench.settle()
    assert bench.document.status is Status.UNKNOWN


def test_a_mark_that_cannot_be_read_is_left_to_a_person(bench: Bench) -> None:
    """Somebody has set the property by hand, or a later version has."""
    held = bench.claim()
    with bench.load().transaction() as change:
        change.set_properties({f"safewriter.{name_of(held.document.attempt)}": "yes"})
    with pytest.raises(UnknownOutcomeError, match="is no mark"):
        bench.settle()


def test_success_is_committed_when_the_mark_is_there(bench: Bench) -> None:
    """The publication is read back from the catalog."""
    held = bench.claim()
    snapshot = bench.publish(held)
    move = bench.table().confirm(held.document, SENT)
    assert (move.status, move.landed) == (Status.COMMITTED, Landed(snapshot, 10, 7))


@pytest.mark.parametrize(("mark", "landed"), [("7 10 70 99", Landed(7, 10, 70)), ("yes", None)])
def test_success_asks_nobody_for_a_mark_that_the_block_has_read_back(
    bench: Bench, mark: str, landed: Landed | None
) -> None:
    """The mark has the form that it has in the table."""
    held = bench.claim()
    bench.catalog.drop_table("db.t")
    seen = StagingState(passed=True, answered=True, mark=mark)
    if landed is None:
        with pytest.raises(UndecidableError, match="is no mark"):
            bench.table().confirm(held.document, seen)
    else:
        assert bench.table().confirm(held.document, seen).landed == landed


def test_success_without_anything_to_publish_is_refused(bench: Bench) -> None:
    """A commit that was not seen is no witness that there was nothing to commit."""
    held = bench.claim()
    with pytest.raises(NotCommittedError, match="no statement has written"):
        bench.table().confirm(held.document, UNSENT)


def test_success_fences_off_what_has_not_arrived(bench: Bench) -> None:
    """Then it certainly never arrives."""
    held = bench.claim()
    with pytest.raises(NotCommittedError, match="cannot any more"):
        bench.table().confirm(held.document, SENT)
    assert name_of(held.document.attempt) in bench.refs()


def leave_files(bench: Bench, held: HeldCheckpoint) -> set[str]:
    """Put two files into the attempt's folder, as Java does, and an unfinished upload."""
    folder = Location.parse(f"{bench.load().metadata.location}/data").key + f"/{name_of(held.document.attempt)}"
    for name in ("one.parquet", "city=Roma/two.parquet"):
        bench.lake.put(f"{folder}/{name}", b"rows")
    bench.lake.begin_upload(Upload(f"{folder}/three.parquet", "1"))
    return {f"{folder}/one.parquet", f"{folder}/city=Roma/two.parquet"}


def test_a_dead_attempt_s_files_are_deleted_and_no_others(bench: Bench) -> None:
    """They lie in a folder of its own, whatever lies beside it."""
    held = bench.claim()
    before = {key for key, _ in contents(bench.lake)}
    left = leave_files(bench, held)
    bench.lake.put(
        f"{next(iter(left)).rpartition('/')[0].partition('/city')[0]}-more/other.parquet", b"of somebody else"
    )
    bench.settle()
    after = {key for key, _ in contents(bench.lake)}
    assert not left & after
    assert {key for key in after if key.endswith(".parquet")} == {
        *(key for key in before if key.endswith(".parquet")),
        *(key for key in after if key.endswith("-more/other.parquet")),
    }
    assert len([key for key in after if key.endswith("-more/other.parquet")]) == 1
    assert list(bench.lake.uploads("")) == []


def test_a_published_attempt_s_files_stay(bench: Bench) -> None:
    """Whatever the verdict's cause, and also if the document does not record it."""
    held = bench.claim()
    left = leave_files(bench, held)
    bench.publish(held)
    assert bench.table().remove_leftovers(held.document, held.document.attempts) == 0
    assert bench.settle().status is Status.COMMITTED
    assert left <= {key for key, _ in contents(bench.lake)}


def test_a_committed_attempt_s_files_stay_when_its_mark_is_gone(bench: Bench) -> None:
    """Marks are kept for a week, and snapshots expire; the document decides."""
    held = bench.claim()
    left = leave_files(bench, held)
    snapshot = bench.publish(held, "ours")
    document = bench.settle()
    bench.add("main", "foreign-1")
    bench.unset_mark(held)
    bench.forget(snapshot)
    assert bench.table().remove_leftovers(document, document.attempts) == 0
    assert left <= {key for key, _ in contents(bench.lake)}


def test_files_stay_where_the_settler_may_not_delete(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict still stands, and no settler retries for ever."""
    left = leave_files(bench, bench.claim())

    def refuse(_: str) -> None:
        raise StoreError("DELETE: 403", denied=True)

    monkeypatch.setattr(bench.lake, "delete", refuse)
    assert bench.settle(requests_ended=True).attempt.cleaned
    assert left <= {key for key, _ in contents(bench.lake)}


def test_a_store_that_does_not_answer_leaves_the_attempt_for_the_next_settler(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one deletes them."""
    left = leave_files(bench, bench.claim())

    def fail(_: str) -> None:
        raise StoreError("DELETE: 503")

    with monkeypatch.context() as patch:
        patch.setattr(bench.lake, "delete", fail)
        assert not bench.settle(requests_ended=True).attempt.cleaned
    bench.grace_passes()
    bench.recovery().clean(bench.write.key)
    assert not left & {key for key, _ in contents(bench.lake)}


def test_a_person_s_verdict_deletes_no_file(bench: Bench) -> None:
    """An old publication may have lost its mark, and the person may be wrong."""
    held = bench.claim()
    left = leave_files(bench, held)
    bench.publish(held)
    with bench.load().transaction() as change:
        change.remove_properties(f"safewriter.{name_of(held.document.attempt)}")
    document = held.document.moved(Status.ROLLED_BACK, reason="by hand: looked", settled_ms=1, settled_by=BY_HAND)
    assert bench.table().remove_leftovers(document, document.attempts) == 0
    assert left <= {key for key, _ in contents(bench.lake)}


def test_a_skipped_block_takes_its_own_files_away(bench: Bench) -> None:
    """And none of the attempt that has committed."""
    held = bench.claim()
    kept = leave_files(bench, held)
    bench.publish(held)
    folder = next(iter(kept)).partition("/data/")[0]
    skipped = f"{folder}/data/{held.document.write_key}-skipped-me/00000.parquet"
    other = skipped.replace("-me/", "-me-too/")
    for key in (skipped, other):
        bench.lake.put(key, b"rows")
    assert bench.table().remove_skipped(held.document, "me") == 1
    left = {key for key, _ in contents(bench.lake)}
    assert skipped not in left
    assert {*kept, other} <= left
    bench.catalog.drop_table("db.t")
    assert bench.table().remove_skipped(held.document, "me-too") == 0, "nobody can tell any more where they are"


def test_files_of_a_table_that_cannot_be_read_now_are_not_forgotten(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clean-up fails, so the next settler retries it; a table that is gone for good is another matter."""
    held = bench.claim()

    def refuse(*_: object) -> None:
        raise StoreError("no answer")

    monkeypatch.setattr(IcebergTable, "_read", refuse)
    with pytest.raises(StoreError, match="no answer"):
        bench.table().remove_skipped(held.document, "me")


def test_another_table_of_the_name_is_left_alone(bench: Bench) -> None:
    """A renamed table keeps its folder, which the new one uses, too."""
    held = bench.claim()
    left = leave_files(bench, held)
    other = dataclasses.replace(held.document.attempt, table_id=str(uuid.uuid4()))
    nameless = dataclasses.replace(held.document.attempt, table_id=None)
    assert bench.table().remove_leftovers(held.document, held.document.attempts, (other, nameless)) == 2
    assert not left & {key for key, _ in contents(bench.lake)}
    left = leave_files(bench, held)
    assert bench.table().remove_leftovers(held.document, (other, nameless)) == 0
    assert left <= {key for key, _ in contents(bench.lake)}


def test_a_catalog_that_cannot_be_opened_is_no_obstacle(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict stands, and no alarm rings for a week; without files to delete the catalog is not even opened."""
    held = bench.claim()
    bench.publish(held)
    committed = bench.settle()

    def refuse(_: object) -> None:
        raise UnsupportedError("no client of this catalog is installed")

    monkeypatch.setattr(type(bench.pointer()), "read", refuse)
    assert bench.table().remove_leftovers(held.document, held.document.attempts) == 0
    monkeypatch.setattr(type(bench.pointer()), "read", lambda _: pytest.fail("it was asked"))
    assert bench.table().remove_leftovers(committed, committed.attempts) == 0


def test_the_files_of_a_table_that_is_gone_stay(bench: Bench) -> None:
    """Their folder is unknown now; the attempt still counts as clean."""
    left = leave_files(bench, bench.claim())
    bench.catalog.drop_table("db.t")
    assert bench.settle(nothing_sent=True, requests_ended=True).attempt.cleaned
    assert left <= {key for key, _ in contents(bench.lake)}


def test_a_rehearsal_deletes_nothing(bench: Bench) -> None:
    """Nor does a settler without time."""
    held = bench.claim()
    left = leave_files(bench, held)
    rehearsed = dataclasses.replace(bench.table(), rehearsal=[])
    assert rehearsed.remove_leftovers(held.document, held.document.attempts) == 0
    late = dataclasses.replace(bench.table(), may_go_on=lambda: False)
    with pytest.raises(StoreError, match="out of time"):
        late.remove_leftovers(held.document, held.document.attempts)
    assert left <= {key for key, _ in contents(bench.lake)}
