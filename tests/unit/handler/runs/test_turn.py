"""The handler's hold on a job's turn: when the job must end for it, and what the result says."""

from __future__ import annotations

from typing import Any

import pytest

from handler.runs.turn import JobTurn, hold_turn
from safewriter.coordination import Configuration, JobCoordinator, Turn
from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.coordination.configuration import OnBlocked
from safewriter.coordination.record import End
from safewriter.coordination.transitions import end
from safewriter.deadline import Deadline, epoch_ms
from safewriter.errors import TurnBlockedError
from safewriter.objects import StoreError
from safewriter.schedule import Schedule


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend()


@pytest.fixture
def coordinator(backend: MemoryBackend) -> JobCoordinator:
    """Return a job that holds its turn, which nothing renews."""
    made = JobCoordinator(Configuration(lock="table", job="job", lease_s=30), backend)
    turn = made.lock()
    assert isinstance(turn, Turn)
    turn.stop()
    turn._clock_s = lambda: 100.0
    turn._sure_until_s = 124.0
    return made


def left(coordinator: JobCoordinator, seconds: float) -> None:
    turn: Any = coordinator.held
    turn._sure_until_s = 100.0 + seconds


@pytest.mark.parametrize(("seconds", "ending"), [(24, False), (7.5, False), (7.4, True), (-1, True)])
def test_the_job_has_to_end_before_its_turn_may_be_lost(
    coordinator: JobCoordinator, seconds: float, *, ending: bool
) -> None:
    """Below a quarter of a lease the job must end, and a later renewal changes nothing."""
    left(coordinator, seconds)

    turn = JobTurn(coordinator)
    assert turn.may_go_on() != ending
    left(coordinator, 24)
    assert turn.may_go_on() != ending
    assert (turn.loss is not None) == ending


def test_without_a_turn_there_is_nothing_to_end() -> None:
    """A job without coordination gets no turn."""
    turn = JobTurn(None)
    warned: list[str] = []
    turn.give_back(warned.append, 1000)
    assert (turn.may_go_on(), turn.loss, turn.lend(), warned) == (True, None, None, [])


def test_a_turn_that_was_lost_does_not_count(coordinator: JobCoordinator, backend: MemoryBackend) -> None:
    """The job succeeded, but the result reports the loss."""
    stored = backend.read("table")
    assert stored is not None
    backend.write(end(stored.record, End.FORCED, 0), stored)
    warned: list[str] = []

    turn = JobTurn(coordinator)
    turn.completed()
    turn.give_back(warned.append, 1000)
    assert len(warned) == 1
    assert "does not count as completed" in warned[0]


def test_a_lock_service_that_does_not_answer_leaves_the_turn_to_its_lease(
    coordinator: JobCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's own outcome stays."""

    def fail(*_: object) -> Any:
        raise StoreError("no answer")

    monkeypatch.setattr(coordinator, "unlock", fail)
    warned: list[str] = []

    JobTurn(coordinator).give_back(warned.append, 1000)
    assert "its lease ends it" in warned[0]


def test_the_session_with_the_lock_service_ends_with_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds even if the job got no turn: a warm function would collect sessions."""
    closed: list[MemoryBackend] = []
    monkeypatch.setenv("SW_LOCKS", "memory://closing")

    def close(backend: MemoryBackend) -> None:
        closed.append(backend)

    monkeypatch.setattr(MemoryBackend, "close", close)
    schedule = Schedule.of(Deadline(epoch_ms() + 60_000, epoch_ms()), 10_000)
    configuration = Configuration(lock="closing", job="B", predecessor="A", on_blocked=OnBlocked.RAISE)
    turn = hold_turn(configuration, schedule, run="run", warn=print, unfinished=lambda: None)
    with pytest.raises(TurnBlockedError), turn:
        pytest.fail("the job has begun")
    assert len(closed) == 1
