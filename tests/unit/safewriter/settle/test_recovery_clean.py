"""The last step of recovery: it removes the leftovers of an ended attempt, and nothing else."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from safewriter.errors import UnknownOutcomeError
from safewriter.objects import StoreError, Upload
from safewriter.record.document import OPEN, CommitPoint, Status
from safewriter.settle.recovery import Cause, Evidence
from safewriter.tables.table import UndecidableError
from tests.unit.safewriter.delta_log import File, key_of
from tests.unit.safewriter.failing import Fault, Network
from tests.unit.safewriter.invariants import check
from tests.unit.safewriter.settle.traces import data_files
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from tests.unit.safewriter.job import Job


def test_a_roll_back_removes_every_file_of_the_attempt() -> None:
    """Foreign files and the log stay, and the document counts the removed files."""
    world = World()
    world.job().begin("{}1.parquet", "day=a%20b/hour=1/{}2.parquet")
    world.lake.put("day=a b/foreign.parquet", b"")

    document = world.settle()

    assert data_files(world) == {"foreign-0.parquet", "day=a b/foreign.parquet"}
    assert world.document.attempt.files_removed == 3
    assert document.status is Status.ROLLED_BACK
    assert list(world.lake.uploads("")) == []


def test_a_commit_keeps_its_files_and_loses_the_rest() -> None:
    """A failed task's file and upload go, the files of the table stay."""
    world = World()
    job = world.job().begin("{}1.parquet", "day=a%20b%25/{}2.parquet").land()

    world.settle()

    assert job.leftover not in world.lake.contents()
    assert {file.key for file in job.files} <= data_files(world)
    assert list(world.lake.uploads("")) == []
    check(world)


def falsely_rolled_back(world: World, **changes: Any) -> Job:
    """Return a living attempt of which its document, and nothing else, says that it was rolled back."""
    job = world.job().begin()
    assert job.held is not None
    false = job.document.moved(Status.ROLLED_BACK, reason="killed", settled_ms=1, settled_by="killed")
    world.checkpoints.replace(job.held, dataclasses.replace(false, **changes))
    return job


def test_an_attempt_that_a_false_document_calls_rolled_back_is_fenced_before_its_files_go() -> None:
    """It may be alive: its commit behind that would name files that are gone."""
    world = World()
    job = falsely_rolled_back(world)

    assert world.recovery().clean(world.key) == 1 + len(job.files)
    assert world.log.transaction(world.key) == job.document.epoch


def test_an_attempt_that_has_left_no_files_is_not_fenced_by_a_clean_up() -> None:
    """The table gets no version for it."""
    world = World()
    job = falsely_rolled_back(world)
    for key in (*(file.key for file in job.files), job.leftover):
        world.lake.delete(key)
    head = world.log.head

    assert world.recovery().clean(world.key) == 0
    assert world.log.head == head


def test_a_clean_up_fences_no_later_attempt_than_the_one_whose_files_go() -> None:
    """A retry that has claimed the write since may commit, whatever epoch the document says."""
    world = World()
    job = falsely_rolled_back(world, epoch=5)

    world.recovery().clean(world.key)
    assert world.log.transaction(world.key) == job.document.epoch == 1


def test_what_its_own_settler_knows_of_an_attempt_needs_no_fence() -> None:
    """A supervisor has the journal; the table gets no version for a job that has failed before its commit."""
    world = World()
    job = world.job().begin()
    head = world.log.head

    world.settle(Cause.KILLED, Evidence(1, job.attempt.nonce, nothing_sent=True))
    assert job.leftover not in data_files(world)
    assert world.log.head == head


def test_a_guard_that_cleans_behind_its_own_verdict_needs_no_fence() -> None:
    """Its requests have ended, and its gate has sent none."""
    world = World()
    job = world.job().begin()
    head = world.log.head
    nonce = job.attempt.nonce
    world.settle(Cause.EXCEPTION, Evidence(1, nonce, nothing_sent=True, requests_ended=True, cleans_later=True))

    assert world.recovery().clean(world.key, ended_nonce=nonce) > 0
    assert job.leftover not in data_files(world)
    assert world.log.head == head


def test_what_a_settler_knows_of_one_attempt_says_nothing_of_another() -> None:
    """The document may have been deleted, and made anew by another owner of the same epoch, which is alive."""
    world = World()
    job = world.job().begin()

    world.settle(Cause.KILLED, Evidence(1, "another", nothing_sent=True, requests_ended=True))
    assert world.document.status is Status.IN_PROGRESS
    assert job.leftover in data_files(world)


def test_files_that_only_an_older_version_refers_to_stay() -> None:
    """An undone commit can still be read in its own version."""
    world = World(CommitPoint.SUCCESS)
    job = world.job().begin("{}1.parquet", "p=%C3%BC%20/{}2.parquet").land()

    world.settle()

    assert world.log.live() == ["foreign-0.parquet"]
    assert {file.key for file in job.files} <= data_files(world)
    assert job.leftover not in data_files(world)
    check(world)


def test_a_skipped_block_takes_its_marker_away() -> None:
    """And has the table delete its files, in a folder or under a name that only this block knows."""
    world = World()
    world.job().begin("{}1.parquet").land()
    write_key = world.settle().write_key
    world.checkpoints.store.put(f"open/{write_key}/of the skipped", b"")
    assert "of the skipped" in world.marked()
    asked: list[str] = []
    recovery = world.recovery()
    table = SimpleNamespace(remove_skipped=lambda document, nonce: asked.append(f"{document.write_key} {nonce}"))
    with patch.object(recovery, "table_of", lambda _: table):
        recovery.clean_skipped(write_key, "of the skipped")
    assert asked == [f"{write_key} of the skipped"]
    assert "of the skipped" not in world.marked()
    recovery.clean_skipped("a document that somebody has deleted", "of the skipped")


def test_the_files_of_other_writes_and_runs_stay() -> None:
    """A prefix belongs to one attempt of one write."""
    world = World()
    job = world.job().begin()
    other = [f"{world.key}-1-ffffffffffffffff-x.parquet", f"sw-{'0' * 32}-1-0000000000000001-x.parquet"]
    for key in other:
        world.lake.put(key, b"")
    world.lake.begin_upload(Upload(other[0], "other"))

    world.settle()

    assert set(other) <= data_files(world)
    assert [upload.key for upload in world.lake.uploads("")] == [other[0]]
    assert job.leftover not in data_files(world)


@pytest.mark.parametrize("status", [Status.IN_PROGRESS, Status.ROLLING_BACK, Status.UNKNOWN])
def test_under_an_open_status_nothing_goes(status: Status) -> None:
    """Not even after every grace, nor by a caller who knows that all requests have ended."""
    world = World()
    job = world.job().begin()
    assert job.held is not None
    if status is not Status.IN_PROGRESS:
        world.checkpoints.replace(job.held, job.document.moved(status))
    world.grace_passes()
    before = world.bucket.contents(), world.lake.contents()

    assert world.recovery().clean(world.key, ended_nonce=job.attempt.nonce) == 0

    assert (world.bucket.contents(), world.lake.contents()) == before


def test_without_a_document_nothing_goes() -> None:
    """Without a verdict nothing may be cleaned."""
    assert World().recovery().clean("sw-none") == 0


def test_cleaning_again_changes_nothing() -> None:
    """A clean write costs one GET."""
    world = World()
    world.job().begin()
    world.settle(Cause.EXCEPTION, Evidence(1, nothing_sent=True, requests_ended=True))
    before = world.bucket.contents(), world.lake.contents()
    network = Network()

    assert world.recovery(network).clean(world.key) == 0

    assert [sent.verb for sent in network.sent] == ["get"]
    assert (world.bucket.contents(), world.lake.contents()) == before


@pytest.mark.parametrize("landed", [True, False])
def test_out_of_time_leaves_the_verdict(landed: object) -> None:
    """Settling comes first; the clean-up raises, and the files wait for the next settler."""
    world = World()
    job = world.job().begin()
    if landed:
        job.land()

    def is_open() -> bool:  # the time is up with the verdict
        stored = world.checkpoints.read(world.key)
        return stored is not None and stored.document.status in OPEN

    recovery = world.recovery(may_go_on=is_open)

    stored = recovery.settle(world.key, Cause.KILLED)

    assert stored is not None
    assert stored.document.status is (Status.COMMITTED if landed else Status.ROLLED_BACK)
    assert job.leftover in data_files(world)
    assert world.marked() == (job.attempt.nonce,)
    with pytest.raises(StoreError, match="out of time"):
        recovery.clean(world.key)
    check(world)


def test_a_log_that_has_lost_versions_is_not_cleaned_by() -> None:
    """It is unknown which files a lost version referred to."""
    world = World()
    job = world.job().begin().land()
    network = Network(Fault.REFUSE, 2, and_all_after=True)  # only the verdict is written
    world.settle(network=network)
    assert job.leftover in data_files(world)
    world.append_foreign()
    world.hide(key_of(2))
    before = data_files(world)

    world.grace_passes()
    with pytest.raises(UndecidableError):
        world.recovery().clean(world.key)

    assert data_files(world) == before


def test_a_document_that_changes_meanwhile_is_read_again() -> None:
    """The newest document records the clean-up, or none does."""
    world = World()
    world.job().begin()
    world.settle(network=Network(Fault.REFUSE, 4, and_all_after=True))
    world.grace_passes()
    meddled = [1]

    def before(_: int) -> None:
        if network.sent[-1].verb == "replace" and meddled:
            meddled.pop()
            world.bucket.put(f"checkpoints/{world.key}.json", world.document.to_bytes())

    network = Network(before=before)

    assert world.recovery(network).clean(world.key) == 3
    assert not meddled
    assert world.document.attempt.cleaned
    assert world.marked() == ()


def test_an_unknown_outcome_keeps_the_files_of_a_commit_that_cannot_be_seen() -> None:
    """No settler may clean a table that was dropped and recreated."""
    world = World()
    job = world.job().begin()
    for version in world.log.versions:
        world.hide(key_of(version))
    world.sleep(1)
    world.log.create(table_id="another")
    for _ in range(3):
        world.log.append(File("x"))

    with pytest.raises(UnknownOutcomeError):
        world.settle()

    assert job.leftover in data_files(world)


@pytest.mark.parametrize("audit_log", [True, False])
def test_a_rollback_is_audited_unless_that_is_switched_off(*, audit_log: bool) -> None:
    """SW_AUDIT_LOG: one line that outlives document and clean-up, or none."""
    world = World()
    world.job().begin()
    world.grace_passes()
    recovery = world.recovery(audit_log=audit_log)
    recovery.settle(world.key, Cause.KILLED, Evidence())
    recovery.clean(world.key)
    lines = [key for key in world.bucket.contents() if key.startswith("audit/")]
    assert lines == ([f"audit/{world.key}-1-rolled_back.jsonl"] if audit_log else [])
