"""Settling an Iceberg write without a JVM: a real SQL catalog, an S3 in memory."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from safewriter.errors import NotCommittedError, UnknownOutcomeError
from safewriter.objects.location import Location
from safewriter.recovery import Cause
from safewriter.state import CommitPoint, Status
from safewriter.tables.iceberg.publishing import drop_branch, fast_forward, forget
from safewriter.tables.iceberg.session import StagingState
from safewriter.tables.iceberg.staging import Staged, branch_of
from safewriter.tables.rehearsal import Rehearsal
from safewriter.tables.table import Intent
from tests.unit.safewriter.tables.iceberg.bench import Bench, KilledError

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS_MAX = 40


def test_a_kill_before_anything_is_staged_is_rolled_back(bench: Bench) -> None:
    """Main is untouched, the branch is gone."""
    bench.claim()
    document = bench.settle()
    assert (document.status, bench.rows()) == (Status.ROLLED_BACK, 10)
    assert set(bench.load().metadata.refs) == {"main"}


@pytest.mark.parametrize("operation", ["append", "overwrite"])
def test_a_kill_after_staging_is_published_without_a_jvm(bench: Bench, operation: str) -> None:
    """The staged snapshot itself becomes main's, and its branch goes in the same commit."""
    staged = bench.stage(bench.claim(), operation=operation)
    document = bench.settle()
    assert (document.status, document.attempt.commit_version, document.attempt.rows) == (
        Status.COMMITTED,
        staged,
        10,
    )
    assert [snapshot.snapshot_id for snapshot in bench.main()][-1] == staged
    assert set(bench.load().metadata.refs) == {"main"}
    bench.check()


@pytest.mark.parametrize(
    ("commit_point", "cause"),
    [(CommitPoint.SUCCESS, Cause.KILLED), (CommitPoint.WRITE, Cause.EXCEPTION), (CommitPoint.SUCCESS, Cause.SWEEPER)],
)
def test_what_is_not_to_count_is_dropped_with_its_files(bench: Bench, commit_point: CommitPoint, cause: Cause) -> None:
    """Exactly ours go: the snapshot, its manifests, its data files."""
    bench.stage(bench.claim(commit_point))
    document = bench.settle(cause)
    assert (document.status, bench.rows(), bench.data()) == (Status.ROLLED_BACK, 10, {"foreign-0"})
    assert len(bench.load().metadata.snapshots) == 1
    bench.check()
    left = {one.key for one in bench.lake.list("")} - bench.referred()
    assert left == set()


@pytest.mark.parametrize("cause", [Cause.EXCEPTION, Cause.KILLED])
def test_what_was_picked_is_published_by_whoever_comes(bench: Bench, cause: Cause) -> None:
    """The pick is the decision, also for one that would have dropped it."""
    held = bench.claim(CommitPoint.SUCCESS)
    staged = bench.stage(held)
    bench.checkpoints.replace(held, held.document.moved(Status.PUBLISHING, commit_version=staged))
    assert bench.settle(cause).status is Status.COMMITTED
    assert bench.main()[-1].snapshot_id == staged


def test_only_the_picked_snapshot_is_published(bench: Bench) -> None:
    """What a statement that goes on adds to the branch after the pick does not come along."""
    held = bench.claim()
    staged = bench.stage(held)
    bench.checkpoints.replace(held, held.document.moved(Status.PUBLISHING, commit_version=staged))
    bench.stage(held, "afterwards")
    assert bench.settle().status is Status.COMMITTED
    assert bench.main()[-1].snapshot_id == staged
    assert bench.rows() == 20


@pytest.mark.parametrize("picked", [False, True])
def test_what_was_staged_and_is_gone_is_rolled_back(bench: Bench, picked: object) -> None:
    """Somebody has expired or dropped it: never committed."""
    held = bench.claim()
    staged = bench.stage(held)
    if picked:
        bench.checkpoints.replace(held, held.document.moved(Status.PUBLISHING, commit_version=staged))
    assert drop_branch(bench.one(), bench.load(), branch_of(held.document.attempt))
    assert bench.settle().status is Status.ROLLED_BACK
    assert bench.rows() == 10


def test_an_append_is_applied_again_on_a_main_that_has_moved(bench: Bench) -> None:
    """Both are in main, each once; the new snapshot names the one that it repeats."""
    staged = bench.stage(bench.claim())
    bench.add("main", "foreign-1")
    document = bench.settle()
    assert (document.status, bench.rows(), bench.data()) == (
        Status.COMMITTED,
        30,
        {"foreign-0", "foreign-1", "ours"},
    )
    summary = bench.main()[-1].summary
    assert summary is not None
    assert summary["source-snapshot-id"] == str(staged)
    table = bench.load()
    files = [
        entry.data_file.file_path.rsplit("/", 1)[-1]
        for manifest in bench.main()[-1].manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
    ]
    assert sorted(files) == ["foreign-0.parquet", "foreign-1.parquet", "ours.parquet"]
    bench.check()


def test_what_is_no_append_ends_rolled_back_on_a_main_that_has_moved(bench: Bench) -> None:
    """Its branch is dropped before the document says so, and its files after."""
    bench.stage(bench.claim(), operation="overwrite")
    bench.add("main", "foreign-1")
    document = bench.settle()
    assert document.status is Status.ROLLED_BACK
    assert "main has moved" in str(document.reason)
    assert bench.data() == {"foreign-0", "foreign-1"}
    bench.check()


def test_a_publishing_that_comes_late_is_refused_after_the_drop(bench: Bench) -> None:
    """Even if main is back where it was: the branch that the commit requires is gone."""
    held = bench.claim()
    staged = bench.stage(held, operation="overwrite")
    table, branch = bench.load(), branch_of(held.document.attempt)
    base = held.document.attempt.version_before
    bench.checkpoints.replace(held, held.document.moved(Status.PUBLISHING, commit_version=staged))
    bench.add("main", "foreign-1")
    assert bench.settle().status is Status.ROLLED_BACK
    bench.load().manage_snapshots().rollback_to_snapshot(base).commit()
    assert not fast_forward(bench.one(), table, branch, Staged(table.metadata, staged, base, "main"))
    assert bench.rows() == 10


def test_a_publishing_is_made_once(bench: Bench) -> None:
    """A second settler finds the first one's, whatever it had read before."""
    staged = bench.publish_and_die()
    assert bench.settle().status is Status.COMMITTED
    assert [snapshot.snapshot_id for snapshot in bench.main()].count(staged) == 1


def test_a_history_that_was_cut_after_the_publishing_tells_nothing(bench: Bench) -> None:
    """The snapshot was published and then expired, and main still shows its rows: never rolled_back."""
    base = bench.main()[-1].snapshot_id
    staged = bench.publish_and_die()
    bench.add("main", "foreign-1")
    assert forget(bench.one(), bench.load(), [base, staged])
    with pytest.raises(UnknownOutcomeError, match="expired"):
        bench.settle()
    assert (bench.document.status, bench.rows()) == (Status.UNKNOWN, 30)


@pytest.mark.parametrize("set_back", [False, True])
def test_a_history_that_was_cut_before_the_claim_does_not_matter(bench: Bench, set_back: object) -> None:
    """What is picked and gone was not published: main is known down to where the attempt began, or lies before."""
    older = bench.add("main", "foreign-1")
    bench.add("main", "foreign-2")
    held = bench.claim()
    staged = bench.stage(held)
    bench.checkpoints.replace(held, held.document.moved(Status.PUBLISHING, commit_version=staged))
    assert drop_branch(bench.one(), bench.load(), branch_of(held.document.attempt))
    if set_back:
        bench.load().manage_snapshots().rollback_to_snapshot(older).commit()
    assert forget(bench.one(), bench.load(), [bench.main()[0].snapshot_id])
    assert bench.settle().status is Status.ROLLED_BACK


def test_half_of_what_was_staged_is_not_applied_again(bench: Bench) -> None:
    """The block's first snapshot was expired, and main has moved: its rows would be left out."""
    held = bench.claim()
    first = bench.stage(held)
    bench.stage(held, "more")
    bench.add("main", "foreign-1")
    assert forget(bench.one(), bench.load(), [first])
    assert (bench.settle().status, bench.rows()) == (Status.ROLLED_BACK, 20)


def test_of_what_was_applied_again_and_set_back_nothing_stays(bench: Bench) -> None:
    """Killed after the publishing, and somebody has taken it out of main: what it repeats goes with it."""
    held = bench.claim()
    staged = bench.stage(held)
    before = bench.add("main", "foreign-1")
    assert bench.settle().status is Status.COMMITTED
    bench.load().manage_snapshots().rollback_to_snapshot(before).commit()
    picked = held.document.moved(Status.PUBLISHING, commit_version=staged)
    bench.bucket.put(f"checkpoints/{bench.write.key}.json", picked.to_bytes())
    assert bench.settle(Cause.EXCEPTION).status is Status.ROLLED_BACK
    assert len(bench.load().metadata.snapshots) == 2
    assert bench.data() == {"foreign-0", "foreign-1"}
    bench.check()


def test_what_others_have_set_back_is_neither_published_nor_deleted(bench: Bench) -> None:
    """The attempt began on a snapshot that somebody takes out of main meanwhile: that one is not ours."""
    first = bench.main()[-1].snapshot_id
    bench.add("main", "foreign-1")
    bench.stage(bench.claim())
    bench.load().manage_snapshots().rollback_to_snapshot(first).commit()
    assert bench.settle().status is Status.COMMITTED
    assert bench.rows() == 20
    table = bench.load()
    files = {
        entry.data_file.file_path.rsplit("/", 1)[-1]
        for manifest in bench.main()[-1].manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
    }
    assert files == {"foreign-0.parquet", "ours.parquet"}
    assert bench.data() == {"foreign-0", "foreign-1", "ours"}


@pytest.mark.parametrize("again", [False, True])
def test_what_was_committed_is_not_deleted_if_somebody_sets_main_back(bench: Bench, again: object) -> None:
    """They may set it forward again: the clean-up of a committed write keeps what it has published."""
    held = bench.claim()
    if again:
        bench.add("main", "foreign-1")
    before = bench.main()[-1].snapshot_id
    bench.stage(held)
    published = bench.settle().attempt.commit_version
    assert published is not None
    bench.load().manage_snapshots().rollback_to_snapshot(before).commit()
    bench.grace_passes()
    bench.recovery().clean(bench.write.key)
    assert bench.document.attempt.cleaned
    bench.load().manage_snapshots().set_current_snapshot(published).commit()
    assert bench.rows() == 20 + 10 * bool(again)
    bench.check()


def test_a_settler_that_slept_does_not_see_the_next_attempt(bench: Bench) -> None:
    """It may settle its own epoch only, and what is published with a newer one is not its own."""
    bench.claim()
    first = bench.settle()
    held = bench.claim()
    bench.stage(held)
    bench.settle()
    move = bench.recovery().tables.open(first).next_move(first, Intent("killed", undo=False, nothing_sent=False))
    assert move.status is Status.ROLLED_BACK


def test_what_a_thawed_attempt_stages_is_removed_when_it_comes_back(bench: Bench) -> None:
    """Spark makes its branch again, on what the retry has published: only its own snapshot and file go."""
    first = bench.claim()
    bench.settle()
    second = bench.claim()
    bench.stage(second, "retry")
    assert bench.settle().status is Status.COMMITTED
    bench.stage(first, "thawed")
    bench.recovery().clean(bench.write.key, quiet_nonce=first.document.owner)
    assert set(bench.load().metadata.refs) == {"main"}
    assert bench.data() == {"foreign-0", "retry"}
    assert bench.rows() == 20
    bench.check()


def test_what_a_late_request_has_staged_goes_with_the_next_attempt(bench: Bench) -> None:
    """The dead one was cleaned up after already; its branch and file are known by the write's name and mark."""
    first = bench.claim()
    bench.settle()
    bench.grace_passes()
    bench.recovery().clean(bench.write.key)
    assert bench.document.attempt.cleaned
    bench.stage(first, "late")
    folder = Location.parse(f"{bench.load().metadata.location}/data").key
    bench.lake.put(f"{folder}/{branch_of(first.document.attempt)}-00000-7-later.parquet", b"parquet")
    bench.stage(bench.claim(), "retry")
    assert bench.settle().status is Status.COMMITTED
    assert set(bench.load().metadata.refs) == {"main"}
    assert bench.data() == {"foreign-0", "retry"}
    bench.check()


def test_what_a_tag_leads_to_is_not_deleted(bench: Bench) -> None:
    """Somebody wants to keep what was staged: the branch goes, the rows stay under the tag."""
    staged = bench.stage(bench.claim())
    bench.load().manage_snapshots().create_tag(staged, "kept").commit()
    assert bench.settle(Cause.EXCEPTION).status is Status.ROLLED_BACK
    assert set(bench.load().metadata.refs) == {"main", "kept"}
    assert bench.data() == {"foreign-0", "ours"}
    bench.check()


def test_a_table_that_was_dropped_is_unknown(bench: Bench) -> None:
    """Nothing can tell; the second look leaves it to a person."""
    bench.stage(bench.claim())
    bench.catalog.drop_table("db.t")
    with pytest.raises(UnknownOutcomeError, match="dropped"):
        bench.settle()
    assert bench.document.status is Status.UNKNOWN


def test_a_dry_run_changes_nothing(bench: Bench) -> None:
    """What would be committed is noted."""
    bench.stage(bench.claim())
    rehearsal = Rehearsal()
    before = bench.load().metadata
    bench.recovery(rehearsal=rehearsal).settle(bench.write.key, Cause.OPERATOR)
    assert bench.load().metadata == before
    assert rehearsal.changes == ["COMMIT lite.db.t: set-snapshot-ref, remove-snapshot-ref"]


def test_a_creation_that_never_came_is_rolled_back_and_clean(empty: Bench) -> None:
    """No catalog knows of it, and no later look has anything left to do."""
    empty.claim()
    assert empty.settle().status is Status.ROLLED_BACK
    empty.grace_passes()
    empty.recovery().clean(empty.write.key)
    assert empty.document.attempt.cleaned


def test_a_creation_that_came_is_known_by_its_mark(empty: Bench) -> None:
    """The table and its rows are there by one commit of the catalog."""
    held = empty.claim()
    empty.create()
    created = empty.commit(held)
    document = empty.settle()
    assert (document.status, document.attempt.commit_version, document.attempt.rows) == (Status.COMMITTED, created, 10)


def test_a_creation_that_is_not_to_count_leaves_an_empty_table(empty: Bench) -> None:
    """Main shows what it showed before, nothing; its file goes, and a catalog cannot drop a table under a condition."""
    held = empty.claim(CommitPoint.SUCCESS)
    empty.create()
    empty.commit(held)
    assert empty.settle().status is Status.ROLLED_BACK
    assert (empty.main(), empty.data()) == ([], set())


def test_a_creation_that_others_have_written_to_stays(empty: Bench) -> None:
    """To take it back would take their rows away."""
    held = empty.claim(CommitPoint.SUCCESS)
    empty.create()
    empty.commit(held)
    empty.add("main", "foreign-1")
    document = empty.settle()
    assert document.status is Status.COMMITTED
    assert "somebody else" in str(document.undo_refused)
    assert empty.rows() == 20


@pytest.mark.parametrize("cause", [Cause.KILLED, Cause.SWEEPER])
def test_an_undo_that_was_begun_is_finished_by_whoever_comes(empty: Bench, cause: Cause) -> None:
    """The document says it before the table does."""
    held = empty.claim()
    empty.create()
    empty.commit(held)
    empty.checkpoints.replace(held, held.document.moved(Status.ROLLING_BACK))
    assert empty.settle(cause).status is Status.ROLLED_BACK
    assert empty.main() == []


def test_a_creation_that_lands_late_is_taken_for_the_write_by_the_next_attempt(empty: Bench) -> None:
    """No fence can keep it out: the retry finds it, and does not bring its rows in twice."""
    first = empty.claim()
    assert empty.settle().status is Status.ROLLED_BACK
    empty.create()
    late = empty.commit(first, name="late")
    empty.stage(empty.claim(), "again")
    document = empty.settle()
    assert (document.status, document.attempt.commit_version) == (Status.COMMITTED, late)
    assert empty.rows() == 10
    assert empty.data() == {"late"}


@pytest.mark.parametrize("stages", [False, True])
def test_a_creation_that_lands_late_is_a_success_of_the_next_attempt(empty: Bench, stages: object) -> None:
    """Not something that has gone past the branch: what the retry stages besides is dropped."""
    first = empty.claim()
    empty.settle()
    empty.create()
    late = empty.commit(first, name="late")
    held = empty.claim()
    if stages:
        empty.stage(held, "again")
    move = empty.recovery().tables.open(held.document).confirm(held.document, StagingState(passed=True))
    assert move.status is Status.COMMITTED
    assert move.landed is not None
    assert move.landed.commit_version == late


def test_a_creation_in_two_commits_is_no_success(empty: Bench) -> None:
    """A kill between the two would have left half of it for the whole."""
    held = empty.claim()
    empty.create()
    empty.commit(held)
    empty.commit(held, name="more")
    table = empty.recovery().tables.open(held.document)
    with pytest.raises(NotCommittedError, match="create the table before"):
        table.confirm(held.document, StagingState(passed=True))
    assert empty.settle(Cause.EXCEPTION).status is Status.ROLLED_BACK
    assert (empty.main(), empty.data()) == ([], set())


def test_what_went_past_its_branch_into_main_is_taken_back(bench: Bench) -> None:
    """Main shows the snapshot of others again that it showed before."""
    held = bench.claim()
    bench.commit(held)
    assert bench.settle(Cause.EXCEPTION).status is Status.ROLLED_BACK
    assert (bench.rows(), bench.data()) == (10, {"foreign-0"})
    bench.check()


def test_what_went_past_its_branch_stays_if_what_main_showed_before_was_expired(bench: Bench) -> None:
    """There is nothing that main could show again: the rows of others must not go, too."""
    held = bench.claim()
    bench.commit(held)
    assert forget(bench.one(), bench.load(), [held.document.attempt.version_before])
    document = bench.settle(Cause.EXCEPTION)
    assert (document.status, bench.rows()) == (Status.COMMITTED, 20)
    assert "expired" in str(document.undo_refused)


def no_move(bench: Bench) -> None:
    """Leave main where it is."""


def move_main(bench: Bench) -> None:
    bench.add("main", "foreign-1")


SHORT = {
    ("before", move_main, "append", Cause.KILLED),
    ("after", move_main, "append", Cause.KILLED),
    ("after", no_move, "append", Cause.EXCEPTION),
    ("before", move_main, "overwrite", Cause.KILLED),
}
"""What scripts/test runs of them; the others are for the matrix."""


@pytest.mark.parametrize(
    ("when", "between", "operation", "cause"),
    [
        pytest.param(*case, marks=() if case in SHORT else pytest.mark.matrix)
        for case in itertools.product(
            ["before", "after"], [no_move, move_main], ["append", "overwrite"], [Cause.KILLED, Cause.EXCEPTION]
        )
    ],
)
def test_a_settler_that_dies_at_any_write_is_finished_by_the_next(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    when: str,
    between: Callable[[Bench], None],
    operation: str,
    cause: Cause,
) -> None:
    """Killed before or after each PUT, DELETE and catalog commit: the verdict is true, and nothing is left."""
    for step in range(STEPS_MAX):
        with monkeypatch.context() as patched:
            bench = Bench(tmp_path_factory.mktemp("bench"), patched)
            bench.stage(bench.claim(), operation=operation)
            between(bench)
            if not dies(bench, step, when, cause):
                break
            document = bench.settle(Cause.SWEEPER)
            assert bench.rows() == 10 + 10 * (between is move_main) + 10 * (document.status is Status.COMMITTED)
            bench.grace_passes()
            bench.recovery().clean(bench.write.key)
            bench.check()
            assert sum("ours" in file for file in bench.data()) == (document.status is Status.COMMITTED)
            assert set(bench.load().metadata.refs) == {"main"}
            assert all(attempt.cleaned for attempt in bench.document.attempts)
            assert {one.key for one in bench.lake.list("")} == bench.referred(), "no file of any kind is left"
    assert 2 < step < STEPS_MAX - 1


def dies(bench: Bench, step: int, when: str, cause: Cause) -> bool:
    """Settle, and die at the write number `step`; tell whether there were so many."""
    left = step
    places: list[tuple[Any, str]] = [(store, "_write") for store in (bench.bucket, bench.lake)]
    places += [(store, "delete") for store in (bench.bucket, bench.lake)]
    places.append((SqlCatalog, "commit_table"))
    originals = {(where, name): getattr(where, name) for where, name in places}

    def wrapped(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0 and when == "before":
                raise KilledError
            result = original(*args, **more)
            if left < 0:
                raise KilledError
            return result

        return call

    for (where, name), original in originals.items():
        setattr(where, name, wrapped(original))
    try:
        bench.settle(cause)
    except KilledError:
        return True
    else:
        return False
    finally:
        for (where, name), original in originals.items():
            setattr(where, name, original)
