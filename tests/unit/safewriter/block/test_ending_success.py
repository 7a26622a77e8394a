"""success(): what it reads back, and what other processes may have done meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from safewriter.errors import (
    ConflictError,
    DeadlineError,
    NotCommittedError,
    SupersededError,
    UnknownOutcomeError,
    UsageError,
)
from safewriter.objects import StoreError
from safewriter.record.document import NO_CHANGE, Status
from safewriter.settle.recovery import Cause, Evidence
from safewriter.tables.delta.gate import GateState
from safewriter.tables.delta.table import DeltaTable
from safewriter.tables.table import Move
from tests.unit.safewriter.block.ending_bench import LANDED, NOTHING_SENT, FakeSession, ending, landed
from tests.unit.safewriter.world import World

REFUSED = replace(NOTHING_SENT, refusal="thread: another thread's")


@dataclass(frozen=True)
class _Strayed(GateState):
    """The report of a session whose block has written past itself."""

    strays = "snapshot 7 is in main"


STRAYED = _Strayed(LANDED.status, passed=False, version=2, refusal="", stray="")


def test_a_success_that_somebody_has_rolled_back_says_so() -> None:
    """The document changed between read-back and compare-and-swap: only its new content counts."""
    world = World()
    job = world.job().begin()
    end = ending(job, FakeSession())
    world.settle(Cause.KILLED, Evidence(1, nothing_sent=True))

    with pytest.raises(SupersededError, match="settled as rolled_back by somebody else"):
        end.succeed(no_change=True)
    assert end.document.status is Status.ROLLED_BACK
    assert not end.succeeded


def test_a_success_that_somebody_has_found_already_is_one() -> None:
    """The supervisor counted the process as dead, and found the commit."""
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
        end.succeed(no_change=True)


@pytest.mark.parametrize("log_is_read", [True, False])
def test_a_table_that_cannot_be_read_back_leaves_the_outcome_open(
    monkeypatch: pytest.MonkeyPatch, *, log_is_read: bool
) -> None:
    """It is neither committed nor rolled back: the next settler finds out."""
    world, _, end = landed()
    error = StoreError("no route to host")

    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(world.lake if log_is_read else world.bucket, "get" if log_is_read else "replace", broken)

    with pytest.raises(UnknownOutcomeError, match=r"could not find out whether .*no route to host"):
        end.succeed()
    assert world.document.status is Status.IN_PROGRESS
    assert not end.succeeded


def test_a_block_publishes_before_its_table_is_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A format that publishes only now sends its one commit; the read-back uses the report after it."""
    done: list[str] = []
    session = FakeSession(publication=lambda: done.append("published"))
    end = ending(World().job().begin(), session)

    def confirm(*_: object) -> Move:
        done.append("read back")
        return Move(Status.COMMITTED)

    monkeypatch.setattr(DeltaTable, "confirm", confirm)

    end.succeed()

    assert done == ["published", "read back"]


def test_the_gate_is_shut_before_the_block_is_published_and_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The write that was declared done must not change any more."""
    done: list[str] = []
    session = FakeSession(answer=lambda: done.append("shut"), publication=lambda: done.append("published"))
    end = ending(World().job().begin(), session)

    def confirm(*_: object) -> Move:
        done.append("read back")
        return Move(Status.COMMITTED)

    monkeypatch.setattr(DeltaTable, "confirm", confirm)

    end.succeed()

    assert done == ["shut", "published", "read back"]


def test_a_publication_without_an_answer_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next try reads the table back: the session knows what it has sent, and sends nothing twice."""
    errors = [StoreError("SlowDown")]

    def publication() -> None:
        if errors:
            raise errors.pop()

    end = ending(World().job().begin().land(), FakeSession(sight=LANDED, publication=publication))

    end.succeed()

    assert end.document.status is Status.COMMITTED


def test_a_publication_that_is_refused_is_no_success_and_is_rolled_back() -> None:
    """The script gets the conflict; nothing has landed, so only the verdict is left to write."""

    def publication() -> None:
        raise ConflictError("the table has moved")

    world = World()
    end = ending(world.job().begin(), FakeSession(publication=publication))
    with pytest.raises(ConflictError, match="has moved") as refused:
        end.succeed()
    assert not end.succeeded

    end.fail(refused.value)

    assert end.document.status is Status.ROLLED_BACK
    assert end.document.attempt.settled_by == Cause.EXCEPTION.value


@pytest.mark.parametrize("is_told", [True, False])
def test_a_publication_without_any_answer_is_settled_by_what_the_table_says(*, is_told: bool) -> None:
    """The program has called success(), so a missing answer undoes nothing."""
    error = StoreError("no route to host")

    def publication() -> None:
        raise error

    job = World().job().begin()
    end = ending(job.land() if is_told else job, FakeSession(sight=LANDED, publication=publication))
    with pytest.raises(UnknownOutcomeError, match=r"could not find out whether .*no route to host"):
        end.succeed()

    end.fail(None)

    assert end.document.status is (Status.COMMITTED if is_told else Status.ROLLED_BACK)
    assert end.document.attempt.settled_by == Cause.UNANSWERED.value


def test_a_success_is_one_write_of_the_document() -> None:
    """Where the read-back says committed, nothing is left to settle."""
    _, job, end = landed()
    asked = len(job.network.sent)

    end.succeed()

    assert [sent.verb for sent in job.network.sent[asked:] if sent.key.startswith("checkpoints/")] == ["replace"]


def test_a_block_without_a_commit_is_committed_on_the_program_s_word() -> None:
    """The program declares that it has nothing to write; the document records that."""
    end = ending(World().job().begin(), FakeSession())
    with pytest.raises(NotCommittedError, match="no statement of the block has made a commit"):
        end.succeed()

    end.succeed(no_change=True)

    assert (end.document.status, end.document.reason) == (Status.COMMITTED, NO_CHANGE)


@pytest.mark.parametrize("sight", [LANDED, REFUSED, STRAYED], ids=["landed", "refused", "strayed"])
def test_the_program_s_word_is_refused_where_the_session_knows_better(sight: GateState) -> None:
    """A block that has written, or had a statement refused, had something to write."""
    published: list[str] = []
    end = ending(World().job().begin(), FakeSession(sight=sight, publication=lambda: published.append("sent")))

    with pytest.raises(UsageError, match=r"no_change=True\) is not true"):
        end.succeed(no_change=True)

    assert published == []
    assert end.document.status is Status.IN_PROGRESS


def test_a_success_whose_rows_are_not_all_in_the_table_is_none() -> None:
    """One statement has landed and another was refused: its rows would be missing silently."""
    end = ending(World().job().begin().land(), FakeSession(sight=replace(LANDED, refusal=REFUSED.refusal)))

    with pytest.raises(NotCommittedError, match="is not whole"):
        end.succeed()

    assert not end.succeeded


def test_a_failed_block_whose_document_is_gone_says_that_nobody_knows() -> None:
    """Somebody has removed it. The commit is in the table, and nothing has undone it."""
    world, _, end = landed()
    world.bucket.delete(f"checkpoints/{world.key}.json")
    own = RuntimeError("the script's own")

    end.fail(own)

    assert own.__notes__ == [f"{world.checkpoints.uri(world.key)} is gone, so the write could not be settled"]
    with pytest.raises(UnknownOutcomeError, match="is gone, so the write could not be settled"):
        end.fail(None)


def test_a_success_after_the_watchdog_s_rollback_is_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """success() comes too late: the watchdog has settled, and its verdict is not committed."""
    job = World().job().begin()
    end = ending(job, FakeSession())
    end.at_deadline()

    with pytest.raises(DeadlineError, match="is rolled_back"):
        end.succeed()
    assert not end.succeeded


def test_a_success_after_the_watchdog_s_own_success_is_one() -> None:
    """The watchdog has found the commit in the table; success() has nothing left to do."""
    _, _, end = landed()
    end.at_deadline()

    end.succeed()

    assert end.succeeded
    assert end.document.attempt.settled_by == "deadline"
