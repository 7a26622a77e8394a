"""The supervisor settles and reports all writes of its dead child, by documents, journal and refused statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from safewriter.errors import NotCommittedError
from safewriter.objects import Location
from safewriter.record import journal
from safewriter.record.document import CommitPoint, Status
from safewriter.settings import Settings
from safewriter.settle import supervisor
from safewriter.settle.recovery import Cause, Evidence, Recovery
from safewriter.settle.supervisor import Supervision, WriteReport
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.invariants import check
from tests.unit.safewriter.settle.supervised import BUDGET_MS, Child, Children
from tests.unit.safewriter.surroundings import TABLE
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from safewriter.record.journal import Event
    from tests.unit.safewriter.job import Job


def test_a_child_without_writes_has_no_reports(children: Children, path: Path) -> None:
    """No journal, or one without a block, is no request to any store."""
    found = children.new()

    assert found.supervision().settle(budget_ms=BUDGET_MS) == ()
    journal.append(path, "python_started")
    assert found.supervision().settle(budget_ms=BUDGET_MS) == ()
    assert found.network.sent == []


def test_a_commit_that_landed_before_the_kill_is_reported_whole(children: Children) -> None:
    """Version, rows and bytes come from the table."""
    found, job = children.claimed()
    found.passed(job)
    job.land()

    report = found.settle()

    assert report == WriteReport(
        table=TABLE,
        format="delta",
        step="a step",
        status=Status.COMMITTED,
        version=2,
        rows=20,
        bytes=200,
        reason="killed after the commit had landed",
        undo_refused=None,
        checkpoint=found.world.checkpoints.uri(found.world.key),
        run_id="run-of-0000000000000001",
    )
    check(found.world)


def test_with_commit_point_success_a_kill_undoes(children: Children) -> None:
    """A write without success() is undone."""
    found, job = children.claimed(World(CommitPoint.SUCCESS))
    found.passed(job)
    job.land()

    report = found.settle()

    assert (report.status, report.reason) == ("rolled_back", "killed: version 2 was undone")
    check(found.world)


def test_a_refused_undo_is_reported(children: Children) -> None:
    """The rows are there, and the report says why they stay."""
    world = World(CommitPoint.SUCCESS, properties={"delta.appendOnly": "true"})
    found, job = children.claimed(world)
    found.passed(job)
    job.land()

    report = found.settle()

    assert (report.status, report.undo_refused) == ("committed", "the table is append-only")


@pytest.mark.parametrize("passed", [True, False])
def test_only_a_commit_that_may_have_been_sent_needs_a_fence(children: Children, passed: object) -> None:
    """The gate writes its line before it sends; without the line the table is left as it is."""
    found, job = children.claimed()
    if passed:
        found.passed(job)

    report = found.settle()

    assert report.status == "rolled_back"
    assert found.world.log.head == (2 if passed else 1)
    check(found.world)


def test_the_line_of_another_attempt_is_no_line_of_ours(children: Children, path: Path) -> None:
    """Each attempt has sent, or not sent, its own commit."""
    found, _ = children.claimed()
    journal.append(path, "commit_passed", nonce="another")

    assert found.settle().status == "rolled_back"
    assert found.world.log.head == 1


def test_an_attempt_that_never_claimed_is_rolled_back(children: Children) -> None:
    """It died between its journal line and its document."""
    found = children.new()
    found.opened(found.world.job())

    report = found.settle()

    assert (report.status, report.reason) == ("rolled_back", "the attempt ended before it had claimed the write")
    assert found.network.mutations == 0


def test_a_write_that_another_attempt_owns_is_not_touched(children: Children) -> None:
    """A duplicate delivery is alive; our child never owned the write."""
    world = World()
    owner = world.job().begin()
    found = children.new(world)
    found.opened(world.job())
    before = world.bucket.contents(), world.lake.contents()

    report = found.settle()

    assert (report.status, report.reason) == (
        "in_progress",
        f"another attempt ({owner.attempt.nonce}) owns the write",
    )
    assert (world.bucket.contents(), world.lake.contents()) == before


def test_a_write_that_another_attempt_has_settled_is_reported_as_it_is(children: Children) -> None:
    """The document says committed, whoever settled it."""
    world = World()
    assert world.job().run()
    found = children.new(world)
    found.opened(world.job())

    assert found.settle().status == "committed"


def test_every_attempt_of_the_child_is_dead(children: Children) -> None:
    """A block that was tried twice is reported once, and settled also if the first try owns it."""
    found, job = children.claimed()
    found.passed(job)
    job.land()
    found.closed(job)
    found.opened(found.world.job())

    report = found.settle()

    assert (report.status, report.version) == ("committed", 2)


def test_blocks_that_are_settled_are_read(children: Children) -> None:
    """A terminal document is one GET."""
    found, job = children.claimed()
    job.land()
    assert job.success()

    assert found.settle().status == "committed"
    assert [sent.verb for sent in found.network.sent] == ["get"]


def test_each_write_has_a_report_in_the_order_of_opening(children: Children) -> None:
    """One write that cannot be settled does not hide the others."""
    found, job = children.claimed()
    found.opened(job, writeKey="sw-other", nonce="other", step="second")
    found.world.bucket.put("checkpoints/sw-other.json", b"damaged")

    first, second = found.supervision().settle(budget_ms=BUDGET_MS)

    assert (first.status, second.status, second.step) == ("rolled_back", "unknown", "second")


def test_the_audit_log_is_as_the_settings_say(children: Children) -> None:
    """Off is off for the supervisor too."""
    found, _ = children.claimed()

    found.supervision(audit_log=False).settle(budget_ms=BUDGET_MS)

    assert not [key for key in found.world.bucket.contents() if key.startswith("audit/")]


def refused(child: Child, job: Job, event: Event = "refused") -> None:
    journal.append(child.path, event, nonce=job.attempt.nonce, reason="thread: another thread's")
    journal.append(child.path, event, nonce=job.attempt.nonce, reason="a later one")


@pytest.mark.parametrize("settled", [True, False])
def test_a_refusal_that_the_script_has_swallowed_is_reported_and_kept(children: Children, *, settled: bool) -> None:
    """The commit stays, but rows of its block are missing: the report says so, and so does the document to a retry."""
    found, job = children.claimed()
    found.passed(job)
    job.land()
    if settled:  # the block has ended with success() before, and a statement has outlived it
        found.world.settle(Cause.SUCCESS)
    refused(found, job)

    report = found.settle()

    assert (report.status, report.incomplete) == (
        "committed",
        "a statement of the block was refused (thread: another thread's)",
    )
    assert found.world.document.incomplete == report.incomplete
    found.world.owner_dies()
    with pytest.raises(NotCommittedError, match="another thread's"):
        found.world.job().claim()
    check(found.world)


def test_the_verdict_itself_says_that_rows_are_missing(children: Children) -> None:
    """Not a request behind it: if the supervisor died between them, a retry would silently skip the write."""
    world = World()
    said: list[str | None] = []

    def look(_: int) -> None:
        if (stored := world.checkpoints.read(world.key)) is not None and stored.document.status is Status.COMMITTED:
            said.append(stored.document.incomplete)

    job = world.job().begin().land()
    found = children.new(world, Network(before=look))
    found.opened(job)
    found.passed(job)
    refused(found, job)
    report = found.settle()

    assert report.incomplete is not None
    assert set(said) == {report.incomplete}


def test_a_word_that_the_document_has_is_kept(children: Children) -> None:
    """It is older, and a retry may have been told of it; an unentered block beside it changes it neither."""
    world = World()
    job = world.job().begin().land()
    world.settle(Cause.SUCCESS, Evidence(1, lost="the first word"))
    found = children.new(world)
    found.opened(job)
    found.passed(job)
    refused(found, job)
    second = world.job()
    found.opened(second)
    found.not_entered(second, "StepError", "this run has a block already")

    report = found.settle()

    assert report.incomplete == world.document.incomplete == "the first word"


@pytest.mark.parametrize("given", [{"a": "b"}, None])
def test_the_settler_has_the_session_s_settings(
    children: Children, monkeypatch: pytest.MonkeyPatch, given: dict[str, str] | None
) -> None:
    """They name the catalogs of its tables."""
    made: list[Recovery] = []

    def spied(*args: Any, **more: Any) -> Recovery:
        made.append(Recovery(*args, **more))
        return made[-1]

    monkeypatch.setattr(supervisor, "Recovery", spied)
    found, _ = children.claimed()
    settings = Settings(Location("checkpoints"))
    Supervision(found.journal, settings, clock=found.world.clock, spark_settings=given).settle(budget_ms=1)
    assert [recovery.settling.spark_settings for recovery in made] == [given or {}]


def test_a_clean_up_beside_it_does_not_take_the_word_out_of_the_document(children: Children) -> None:
    """A sweep changes the document between the supervisor's read and write; the retry must still get the reason."""
    world = World()
    touched: list[int] = []

    def sweep(number: int) -> None:
        stored = world.checkpoints.read(world.key)
        if stored is not None and stored.document.status is Status.COMMITTED and len(touched) < 2:
            touched.append(number)
            assert world.checkpoints.replace(stored, stored.document.cleaned((), 0)) is not None

    job = world.job().begin().land()
    world.settle(Cause.SUCCESS)
    found = children.new(world, Network(before=sweep))
    found.opened(job)
    found.passed(job)
    refused(found, job)

    report = found.settle()

    assert len(touched) == 2
    assert (
        world.document.incomplete
        == report.incomplete
        == "a statement of the block was refused (thread: another thread's)"
    )


def test_a_refusal_that_no_document_tells_is_unknown(children: Children) -> None:
    """A retry would silently skip the write."""
    world = World()
    job = world.job().begin().land()
    world.settle(Cause.SUCCESS)
    where = world.checkpoints.uri(world.key)

    def expire(number: int) -> None:
        if number == 2:
            world.bucket.delete(f"checkpoints/{world.key}.json")

    found = children.new(world, Network(before=expire))
    found.opened(job)
    found.passed(job)
    refused(found, job)

    report = found.settle()

    assert report.status == "unknown"
    assert (report.reason or "").startswith(f"{where} does not say that its write is not whole: a statement")


def test_a_document_that_a_retry_has_claimed_meanwhile_is_its_own(children: Children) -> None:
    """It would write again the rows beside the block, and no document says so: the outcome is unknown."""
    world = World()
    job = world.job().begin()
    world.settle(Cause.EXCEPTION, Evidence(1, nothing_sent=True))
    claimed: list[str] = []

    def claim(number: int) -> None:
        if number == 2:
            claimed.append(world.job().claim().checkpoint.document.owner)

    found = children.new(world, Network(before=claim))
    found.opened(job)
    refused(found, job, "stray")

    report = found.settle()

    assert (report.status, world.document.owner, world.document.incomplete) == ("unknown", claimed[0], None)


@pytest.mark.parametrize("is_announced", [True, False])
def test_the_rows_of_a_block_that_was_not_entered_are_missing(children: Children, *, is_announced: bool) -> None:
    """An earlier block of its name is committed, and the script has swallowed the error of the second."""
    found, job = children.claimed()
    found.passed(job)
    job.land()
    second = found.world.job()
    if is_announced:
        found.opened(second)
    found.not_entered(second, "StepError", "this run has a block already")

    report = found.settle()

    assert (report.status, report.incomplete) == (
        "committed",
        "the block was not entered (StepError: this run has a block already)",
    )
    assert found.world.document.incomplete is None, "the write itself is whole, and a retry may skip it"


def test_a_block_that_is_entered_at_the_second_try_lacks_nothing(children: Children) -> None:
    """The script has waited and retried."""
    found = children.new()
    found.not_entered(found.world.job(), "BlockOpenError", "another block is open")
    again = found.world.job().begin()
    found.opened(again)
    found.passed(again)
    again.land()

    report = found.settle()

    assert (report.status, report.incomplete) == ("committed", None)


def test_a_refusal_of_a_write_that_is_rolled_back_hides_nothing(children: Children) -> None:
    """The retry writes all rows again."""
    found, job = children.claimed()
    refused(found, job)

    report = found.settle()

    assert (report.status, report.incomplete) == ("rolled_back", None)


def test_rows_beside_a_block_are_reported_whatever_became_of_the_block(children: Children) -> None:
    """They are in the table, and a retry would bring them in once more."""
    found, job = children.claimed()
    refused(found, job, "stray")

    report = found.settle()

    assert (report.status, report.incomplete) == ("rolled_back", "thread: another thread's")


def test_a_refusal_of_an_earlier_block_of_the_write_is_healed_by_a_later_one(children: Children) -> None:
    """The script has retried, and all rows of that block are there."""
    found, job = children.claimed()
    refused(found, job)
    found.world.settle(Cause.EXCEPTION, Evidence(1, nothing_sent=True))
    again = found.world.job().begin()
    found.opened(again)
    found.passed(again)
    again.land()

    report = found.settle()

    assert (report.status, report.incomplete) == ("committed", None)


@pytest.mark.parametrize("sent", [True, False])
def test_only_the_epoch_that_the_dead_attempt_owns_is_settled(
    children: Children, monkeypatch: pytest.MonkeyPatch, *, sent: bool
) -> None:
    """Between the supervisor's two reads another settler and a retry were faster, and that retry is alive. If it were
    settled by the evidence about the dead one, its commit would land after a verdict, and so would the next retry's.
    """
    found, dead = children.claimed(World(CommitPoint.SUCCESS))
    world = found.world
    if sent:
        found.passed(dead)
        dead.land()
    retries: list[Job] = []

    def overtake(number: int) -> None:
        if number == 2:  # the first reading has found the dead attempt's epoch
            world.owner_dies()
            world.settle()
            retries.append(world.job().begin())

    bucket = Network(before=overtake).store(world.bucket)
    monkeypatch.setattr(supervisor, "open_store", lambda _: bucket)

    report = found.settle(budget_ms=3_600_000)

    (retry,) = retries
    assert report.status == "in_progress"
    assert (world.document.status, world.document.owner) == (Status.IN_PROGRESS, retry.attempt.nonce)
    assert retry.commit()
    assert retry.success()
    check(world)
