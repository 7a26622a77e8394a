"""success(): what is read back, what somebody else may have done meanwhile, and what is cleaned up afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.errors import (
    DeadlineError,
    NotCommittedError,
    SupersededError,
    UnknownOutcomeError,
)
from safewriter.objects import StoreError
from safewriter.recovery import Cause, Evidence
from safewriter.state import NO_CHANGE, Checkpoint, Status
from safewriter.tables.delta.table import DeltaTable
from safewriter.tables.table import Move
from tests.support.hygiene import wait_for_hygiene
from tests.unit.safewriter.delta_log import key_of
from tests.unit.safewriter.ending_bench import LANDED, FakeSession, ending
from tests.unit.safewriter.world import Job, World

if TYPE_CHECKING:
    from safewriter.checkpoint import StoredCheckpoint
    from safewriter.ending import Ending


def landed(world: World | None = None) -> tuple[World, Job, Ending]:
    """A block whose commit has landed."""
    world = world or World()
    job = world.job().begin().land()
    return world, job, ending(job, FakeSession(sight=LANDED))


def test_a_success_that_somebody_has_rolled_back_says_so() -> None:
    """The document changed between the block's read-back and its compare-and-swap: only what it says now counts."""
    world = World()
    job = world.job().begin()
    end = ending(job, FakeSession())
    world.settle(Cause.KILLED, Evidence(1, nothing_sent=True))

    with pytest.raises(SupersededError, match="settled as rolled_back by somebody else"):
        end.succeed()
    assert end.document.status is Status.ROLLED_BACK
    assert not end.succeeded


def test_a_success_that_somebody_has_found_already_is_one() -> None:
    """The supervisor took the process for dead, and found the commit."""
    world, _, end = landed()
    world.settle(Cause.KILLED)

    end.succeed()

    assert end.succeeded
    assert end.document.attempt.settled_by == "killed"


def test_a_success_of_a_later_attempt_is_not_this_block_s() -> None:
    """The write is committed, but by another owner."""
    world = World()
    job = world.job().begin()
    end = ending(job, FakeSession())
    world.settle(Cause.KILLED, Evidence(1, nothing_sent=True))
    later = world.job().begin()
    assert later.held is not None
    assert world.checkpoints.replace(later.held, later.document.moved(Status.COMMITTED, reason=NO_CHANGE))

    with pytest.raises(SupersededError, match="settled as committed by somebody else"):
        end.succeed()


@pytest.mark.parametrize("log_is_read", [True, False])
def test_a_table_that_cannot_be_read_back_leaves_the_outcome_open(
    monkeypatch: pytest.MonkeyPatch, *, log_is_read: bool
) -> None:
    """Neither committed nor not: whoever looks next finds out."""
    world, _, end = landed()
    error = StoreError("no route to host")

    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(world.lake if log_is_read else world.bucket, "get" if log_is_read else "replace", broken)

    with pytest.raises(UnknownOutcomeError, match=r"could not be told: .*no route to host"):
        end.succeed()
    assert world.document.status is Status.IN_PROGRESS
    assert not end.succeeded


class Picks:
    """A format that has something to do after success() was called, as Iceberg publishes what was picked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, then: Move) -> None:
        self.intents: list[Any] = []
        self._then = then
        monkeypatch.setattr(DeltaTable, "confirm", lambda *_: Move(Status.PUBLISHING))
        monkeypatch.setattr(DeltaTable, "next_move", self._next_move)

    def _next_move(self, document: Checkpoint, intent: Any) -> Move:
        self.intents.append(intent)
        return self._then


def test_an_outage_while_the_rest_is_done_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was picked stays picked: the table is not read back a second time."""
    _, job, end = landed()
    Picks(monkeypatch, then=Move(Status.COMMITTED, "published"))
    settle, errors = job.recovery.settle, [UnknownOutcomeError("nobody can tell")]
    errors[0].__cause__ = StoreError("SlowDown")

    def settled(key: str, cause: Cause, evidence: Evidence) -> StoredCheckpoint | None:
        if errors:
            raise errors.pop()
        return settle(key, cause, evidence)

    monkeypatch.setattr(job.recovery, "settle", settled)

    end.succeed()

    assert end.document.status is Status.COMMITTED


def test_a_rest_that_cannot_be_told_of_is_settled_like_a_success_without_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The program has said success; what nobody could tell is no reason to undo."""
    _, job, end = landed()
    picks = Picks(monkeypatch, then=Move(Status.COMMITTED, "published"))
    settle = job.recovery.settle

    def lost(*_: object) -> None:
        raise UnknownOutcomeError("nobody can tell")

    monkeypatch.setattr(job.recovery, "settle", lost)
    with pytest.raises(UnknownOutcomeError, match="could not be told"):
        end.succeed()
    monkeypatch.setattr(job.recovery, "settle", settle)

    end.fail(None)

    assert [intent.cause for intent in picks.intents] == [Cause.UNANSWERED.value]


def test_what_is_left_to_do_after_success_is_done_before_it_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block settles its own write to the end, and cleans up beside the job."""
    _, job, end = landed()
    picks = Picks(monkeypatch, then=Move(Status.COMMITTED, "published"))
    monkeypatch.setattr(job.recovery, "clean", lambda *_, **__: pytest.fail("the job waits for its clean-up"))

    end.succeed()

    assert [intent.cause for intent in picks.intents] == ["success"]
    assert (end.document.status, end.document.attempt.settled_by) == (Status.COMMITTED, "success")


def test_what_is_still_to_be_published_is_not_dated_as_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who finds the document then knows that nothing is decided."""
    world, _, end = landed()
    Picks(monkeypatch, then=Move(Status.COMMITTED))

    end.succeed()

    written = [Checkpoint.from_bytes(body) for key, body in world.bucket.written if key.startswith("checkpoints/")]
    (picked,) = [one.attempt for one in written if one.status is Status.PUBLISHING]
    assert (picked.settled_ms, picked.settled_by, picked.cleaned) == (None, None, False)


def test_a_spotless_publication_is_cleaned_without_a_look_at_the_lake(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block knows that its tasks have left nothing, whoever has written the verdict."""
    world, job, end = landed()
    Picks(monkeypatch, then=Move(Status.COMMITTED))
    end.succeed()

    end.finish()
    wait_for_hygiene()

    assert world.document.attempt.cleaned
    assert world.marked() == ()
    assert job.leftover in world.lake.contents()


def test_a_success_is_one_write_of_the_document() -> None:
    """Where the read-back says committed, nothing is left to settle."""
    _, job, end = landed()
    asked = len(job.network.sent)

    end.succeed()

    assert [sent.verb for sent in job.network.sent[asked:] if sent.key.startswith("checkpoints/")] == ["replace"]


def test_a_success_without_a_change_says_so_in_its_document() -> None:
    """A retry claims such a write anew, and must be able to tell."""
    end = ending(World().job().begin(), FakeSession())

    end.succeed()

    assert (end.document.status, end.document.reason) == (Status.COMMITTED, NO_CHANGE)


def test_a_log_that_has_lost_versions_leaves_the_outcome_open() -> None:
    """Whether somebody has settled the write cannot be told from it."""
    world = World()
    end = ending(world.job().begin(), FakeSession())
    for _ in range(2):
        world.append_foreign()
    world.hide(key_of(2))

    with pytest.raises(UnknownOutcomeError, match="could not be told"):
        end.succeed()
    assert world.document.status is Status.IN_PROGRESS


def test_a_failed_block_whose_document_is_gone_keeps_what_it_knew() -> None:
    """Somebody has removed it: there is nothing to settle, and the script's error goes on."""
    world, _, end = landed()
    world.bucket.delete(f"checkpoints/{world.key}.json")

    end.fail(RuntimeError("the script's own"))

    assert end.document.status is Status.IN_PROGRESS


def test_what_cannot_be_published_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict on what was picked is another one, and the script hears of it."""
    _, _, end = landed()
    Picks(monkeypatch, then=Move(Status.ROLLED_BACK, "main has moved"))

    with pytest.raises(NotCommittedError, match=r"it is rolled_back \(main has moved\)"):
        end.succeed()


def test_what_another_attempt_published_is_no_success_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The document is committed, but its owner is another."""
    _, job, end = landed()
    Picks(monkeypatch, then=Move(Status.COMMITTED))
    settle = job.recovery.settle

    def settled_by_another(*arguments: Any) -> Any:
        stored = settle(*arguments)
        assert stored is not None
        return replace(stored, document=replace(stored.document, owner="another"))

    monkeypatch.setattr(job.recovery, "settle", settled_by_another)

    with pytest.raises(NotCommittedError):
        end.succeed()


def test_a_success_after_the_watchdog_s_rollback_is_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """success() comes too late: the watchdog has settled, and its verdict is not committed."""
    job = World().job().begin()
    end = ending(job, FakeSession())
    end.at_deadline()

    with pytest.raises(DeadlineError, match="is rolled_back"):
        end.succeed()
    assert not end.succeeded


def test_a_success_after_the_watchdog_s_own_success_is_one() -> None:
    """The watchdog has found the commit in the table; nothing else is asked of it."""
    _, _, end = landed()
    end.at_deadline()

    end.succeed()

    assert end.succeeded
    assert end.document.attempt.settled_by == "deadline"


# -- after the verdict -------------------------------------------------------------------------------------------------


def test_a_spotless_success_only_takes_its_marker_away() -> None:
    """Nothing was left, so nothing is looked for: the lake is not asked again."""
    world, job, end = landed()
    end.succeed()
    asked = len(job.network.sent)

    end.finish()
    wait_for_hygiene()

    assert world.document.attempt.cleaned
    assert world.marked() == ()
    assert [(sent.verb, sent.key.split("/")[0]) for sent in job.network.sent[asked:]] == [
        ("delete", "open"),
        ("delete", "leases"),
    ]


def test_files_that_a_failed_task_may_have_left_are_looked_for_after_a_success(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The commit refers to the others."""
    monkeypatch.setattr(FakeSession, "may_have_left_files", lambda *_: True)
    world, job, end = landed()
    end.succeed()
    assert not world.document.attempt.cleaned

    end.finish()
    wait_for_hygiene()

    assert world.document.attempt.cleaned
    assert world.marked() == ()
    assert job.leftover not in world.lake.contents()
    assert all(file.key in world.lake.contents() for file in job.files)


def test_a_success_that_could_not_be_cleaned_keeps_its_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise no sweeper would find what a failed task has left."""
    monkeypatch.setattr(FakeSession, "may_have_left_files", lambda *_: True)
    world, job, end = landed()
    end.succeed()

    def denied(*_: object, **__: object) -> None:
        raise StoreError("denied")

    monkeypatch.setattr(world.lake, "list", denied)
    end.finish()
    wait_for_hygiene()

    assert world.marked() == (job.attempt.nonce,)


def test_an_earlier_attempt_s_files_are_looked_for_after_a_success() -> None:
    """They may have come after that attempt's own clean-up; the block's own tasks have left nothing."""
    world = World()
    first = world.job().begin()
    world.owner_dies()
    world.settle(Cause.KILLED, Evidence(1, nothing_sent=True, quiet=True))
    second = world.job().begin().land()
    world.lake.put(first.leftover, b"parquet")
    end = ending(second, FakeSession(sight=replace(LANDED, version=second.slot)))
    end.succeed()

    end.finish()
    wait_for_hygiene()

    assert first.leftover not in world.lake.contents()
    assert world.marked() == ()


def test_a_note_goes_when_its_commit_has_landed() -> None:
    """Its slot is taken for good; a block that wrote none asks for none."""
    world = World(existing=False)
    job = world.job().begin().land()
    key = job.checkpoints.note_key(world.key, 1)
    assert key in world.bucket.contents()
    end = ending(job, FakeSession(sight=replace(LANDED, version=0, noted=True)))
    end.succeed()

    end.finish()
    wait_for_hygiene()

    assert key not in world.bucket.contents()


def test_a_cleaned_success_is_not_cleaned_again_while_an_earlier_attempt_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One attempt that nobody has cleaned up after is enough for a look; none is none."""
    _, job, end = landed()
    end.succeed()
    monkeypatch.setattr(job.recovery, "clean", lambda *_, **__: pytest.fail("nothing is left to look for"))

    end.finish()
    wait_for_hygiene()
