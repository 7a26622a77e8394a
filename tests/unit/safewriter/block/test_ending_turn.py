"""How a block ends whose turn has ended, or may end at any moment."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.errors import TurnLostError, UnknownOutcomeError
from safewriter.record.document import CommitPoint, Status
from safewriter.settle.recovery import Cause
from tests.unit.safewriter.block.ending_bench import LANDED, NOTHING_SENT, FakeSession, ending
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from tests.unit.safewriter.job import Job


class Turn:
    """A turn that a test ends."""

    def __init__(self, left_s: float = 1.0) -> None:
        self.left_s = left_s
        self.checks = 0

    def check(self) -> None:
        self.checks += 1
        if self.left_s <= 0:
            raise self.lost_error()

    def lost_error(self) -> TurnLostError:
        return TurnLostError("the turn has ended")


class Noting(FakeSession):
    """A session that records its calls."""

    done: list[str] = []  # noqa: RUF012 - each test makes its own

    def shut(self, reason: str) -> None:
        self.done.append(f"shut: {reason}")
        super().shut(reason)

    def cancel(self) -> None:
        self.done.append("cancelled")

    def publish(self) -> None:
        self.done.append("published")
        super().publish()


def in_turn(job: Job, turn: Turn, session: Any) -> Any:
    session.done = []
    end = ending(job, session)
    end._block = replace(end._block, turn=turn)  # type: ignore[arg-type]
    return end


def test_nothing_is_published_in_a_turn_that_has_ended() -> None:
    """The commit would be one in another job's turn."""
    session = Noting(sight=NOTHING_SENT)
    end = in_turn(World().job().begin(), Turn(0.0), session)
    with pytest.raises(TurnLostError):
        end.succeed()
    assert "published" not in session.done


def test_a_commit_that_has_passed_the_gate_needs_no_turn_any_more() -> None:
    """It was made in the turn; the table shows whether it landed."""
    turn = Turn(0.0)
    job = World().job().begin().land()
    in_turn(job, turn, Noting(sight=LANDED)).succeed()
    assert turn.checks == 0
    assert job.world.document.status is Status.COMMITTED


def test_a_failed_block_undoes_nothing_in_another_job_s_turn() -> None:
    """An undo would be a commit. A landed commit stays, and the note on it says that the turn has ended."""
    job = World().job().begin().land()
    in_turn(job, Turn(0.0), Noting(sight=LANDED)).fail(ZeroDivisionError())
    assert job.world.document.status is Status.COMMITTED
    assert job.world.document.attempt.settled_by == Cause.TURN.value


def test_a_failed_block_that_counts_only_by_success_is_undone_whoever_has_the_turn() -> None:
    """The next holder does the same before its own turn begins, so the undo of whoever is first precedes it."""
    job = World(CommitPoint.SUCCESS).job().begin().land()
    with pytest.raises(TurnLostError):
        in_turn(job, Turn(0.0), Noting(sight=LANDED)).fail(ZeroDivisionError())
    assert job.world.document.status is Status.ROLLED_BACK
    assert job.world.document.attempt.settled_by == Cause.TURN.value


def test_a_failed_block_in_its_own_turn_is_undone() -> None:
    """As without a coordinator."""
    job = World().job().begin().land()
    in_turn(job, Turn(), Noting(sight=LANDED)).fail(ZeroDivisionError())
    assert job.world.document.status is Status.ROLLED_BACK
    assert job.world.document.attempt.settled_by == Cause.EXCEPTION.value


@pytest.mark.parametrize("error", [None, RuntimeError("Job 5 cancelled part of cancelled job group")])
def test_a_turn_lost_after_the_commit_had_landed_ends_the_block_by_that(error: Exception | None) -> None:
    """Not by the error of our own cancellation: a stream restarts for a lost turn, and for nothing else."""
    job = World().job().begin().land()
    end = in_turn(job, Turn(0.0), Noting(sight=LANDED))
    end.at_lost_turn()
    with pytest.raises(TurnLostError, match="the write is committed, and a retry skips it") as raised:
        end.fail(error)
    assert raised.value.__cause__ is error
    assert job.world.document.status is Status.COMMITTED


def test_a_lost_turn_of_a_write_that_nobody_can_judge_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is unknown; the next holder settles it."""
    error = RuntimeError("cancelled")
    end = in_turn(World().job().begin().land(), Turn(0.0), Noting(sight=LANDED))

    def no_verdict(*_: object) -> None:
        raise UnknownOutcomeError("the log has a gap")

    monkeypatch.setattr(end, "_settle", no_verdict)
    with pytest.raises(TurnLostError, match="the log has a gap") as raised:
        end.fail(error)
    assert raised.value.__cause__ is error


@pytest.mark.parametrize("error", [None, ZeroDivisionError()])
def test_a_block_whose_turn_has_ended_says_so(error: Exception | None) -> None:
    """Also if the script did not notice, or raised another error before."""
    job = World().job().begin()
    with pytest.raises(TurnLostError) as raised:
        in_turn(job, Turn(0.0), Noting()).fail(error)
    assert raised.value.__cause__ is error
    assert job.world.document.status is Status.ROLLED_BACK


def test_a_lost_turn_shuts_the_gate_and_stops_the_work() -> None:
    """On the watchdog's thread; after a success it only shuts the gate."""
    session = Noting(sight=LANDED)
    end = in_turn(World().job().begin().land(), Turn(), session)
    end.at_lost_turn()
    assert session.done == ["shut: the turn has ended", "cancelled"]
    end.succeeded = True
    end.at_lost_turn()
    assert session.done[2:] == ["shut: the turn has ended"]


def test_a_jvm_that_does_not_answer_leaves_a_lost_turn_to_the_next_holder(caplog: pytest.LogCaptureFixture) -> None:
    """The next holder's fence refuses a commit that the gate may still let through."""

    def hang() -> None:
        raise OSError("the JVM is gone")

    in_turn(World().job().begin(), Turn(0.0), Noting(answer=hang)).at_lost_turn()
    assert "the turn has ended, and the JVM does not answer (the JVM is gone)" in caplog.text
