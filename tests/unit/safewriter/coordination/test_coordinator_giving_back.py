"""How a coordinator gives a turn back: verdicts, lost answers, turns that do not count."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.coordination.coordinator import JobCoordinator
from safewriter.coordination.record import End, OpenWrite, Record
from safewriter.coordination.transitions import end, grant, open_write
from safewriter.errors import SettingError, TurnBlockedError, TurnLostError, UnknownOutcomeError
from safewriter.objects.store import StoreError
from tests.unit.safewriter.coordination.bench import coordinator_of as of
from tests.unit.safewriter.coordination.bench import job, now_of

if TYPE_CHECKING:
    from collections.abc import Iterable


ONE = OpenWrite("s3://checkpoints", "one", 1)


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend()


def silent_twice(call: Any) -> Any:
    """Return a function whose first two calls have no answer."""
    calls: list[object] = []

    def silent(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) <= 2:
            raise StoreError("no answer")
        return call(*arguments)

    return silent


def test_a_short_silence_of_the_lock_service_costs_no_completion(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator retries while it surely holds the turn, also at the bucket with the verdicts."""
    coordinator = of(backend, poll_s=0.001, decided=silent_twice(lambda writes: writes))
    coordinator.lock().open_write(ONE)
    monkeypatch.setattr(backend, "write", silent_twice(backend.write))
    monkeypatch.setattr(backend, "read", silent_twice(backend.read))
    assert coordinator.unlock()
    assert now_of(backend).completions == 1


def test_a_service_that_refuses_a_release_is_not_asked_again(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting would not help."""
    asked: list[object] = []

    def deny(*_: object) -> Any:
        asked.append(_)
        raise StoreError("no permission", denied=True)

    coordinator = of(backend)
    coordinator.lock()
    monkeypatch.setattr(backend, "write", deny)
    with pytest.raises(StoreError, match="no permission"):
        coordinator.unlock()
    assert len(asked) <= 3


def test_a_block_that_leaves_a_write_without_a_verdict_hears_of_it(backend: MemoryBackend) -> None:
    """The error says that the turn does not count, and not that another job took it."""
    coordinator = of(backend, decided=lambda _: ())
    told = "given back with a write that has no verdict, so it does not count"
    with pytest.raises(TurnLostError, match=told), coordinator.turn() as turn:
        turn.open_write(ONE)
    assert (now_of(backend).completions, now_of(backend).unsettled) == (0, (ONE,))


def test_a_coordinator_completes_as_many_turns_as_it_takes(backend: MemoryBackend) -> None:
    """Several turns of a run count, unless the run has only one turn."""
    for count, ends in ((False, [End.COMPLETED, End.COMPLETED]), (True, [End.COMPLETED, End.REPEATED])):
        backend = MemoryBackend()
        for _ in range(2):
            coordinator = JobCoordinator(job(), backend, run="run", run_has_one_turn=count)
            with coordinator.turn():
                pass
        assert [past.end for past in now_of(backend).history] == ends


@pytest.mark.parametrize("error", [UnknownOutcomeError("no verdict"), StoreError("no answer")])
def test_a_checkpoint_bucket_that_does_not_answer_keeps_no_lock(backend: MemoryBackend, error: Exception) -> None:
    """The turn ends without completing, and the next holder settles all of its writes."""

    def decided(_: Iterable[OpenWrite]) -> Iterable[OpenWrite]:
        raise error

    coordinator = of(backend, decided=decided, lease_s=1)
    turn = coordinator.lock()
    turn.open_write(ONE)
    assert not coordinator.unlock()
    assert now_of(backend).holder is None
    assert now_of(backend).unsettled == (ONE,)
    assert not turn._thread.is_alive()  # type: ignore[union-attr]


def test_the_writes_of_a_job_to_which_the_turn_was_lent_are_looked_at(backend: MemoryBackend) -> None:
    """They are in the record only, which the coordinator reads again."""
    coordinator = of(backend, decided=lambda _: ())
    turn = coordinator.lock()
    turn.is_lent = True  # type: ignore[union-attr]
    backend.write(open_write(now_of(backend), ONE), backend.read("lock"))
    assert not coordinator.unlock()
    assert now_of(backend).unsettled == (ONE,)


def test_time_for_the_release_is_left_when_nobody_can_tell_the_verdicts(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn is still held at its release."""

    def decided(_: object) -> Any:
        raise StoreError("no answer")

    coordinator = of(backend, decided=decided, lease_s=1, poll_s=0.01)
    turn = coordinator.lock()
    turn.open_write(ONE)
    write, left_s = backend.write, []

    def noting(*arguments: Any) -> Any:
        left_s.append(turn.left_s)
        return write(*arguments)

    monkeypatch.setattr(backend, "write", noting)
    assert not coordinator.unlock()
    assert min(left_s) > 0


def test_a_job_waits_only_while_both_its_coordinator_and_its_caller_allow_it(backend: MemoryBackend) -> None:
    """The coordinator's limit is the invocation, the caller's is the stream."""
    backend.write(grant(Record("lock"), job("other"), "other", "", 0), None)
    for own, asked in ((False, True), (True, False)):
        coordinator = JobCoordinator(job(max_wait_s=60), backend, may_wait=partial(bool, own))
        with pytest.raises(TurnBlockedError):
            coordinator.lock(may_wait=partial(bool, asked))


def test_settling_is_told_when_it_has_to_end(backend: MemoryBackend) -> None:
    """Settling gets the same `may_go_on` as the wait for the turn."""
    record = open_write(grant(Record("lock"), job("dead"), "dead", "", 0), ONE)
    backend.write(end(record, End.EXPIRED, 0), None)
    told: list[bool] = []
    coordinator = of(backend, settle=lambda _, may_go_on: told.append(may_go_on()))
    coordinator._may_wait = lambda: False
    coordinator.lock()
    assert told == [False]


def test_a_turn_without_anything_to_do_that_was_lost_is_none(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`nothing_to_do` raises, since the turn does not count as completed."""
    coordinator = of(backend)
    lock = coordinator.lock

    def lock_and_lose() -> Any:
        turn = lock()
        backend.write(end(now_of(backend), End.FORCED, 0), backend.read("lock"))
        return turn

    monkeypatch.setattr(coordinator, "lock", lock_and_lose)
    with pytest.raises(TurnLostError, match="an operator ended it"):
        coordinator.nothing_to_do()


def test_a_block_s_exception_goes_on_whatever_the_lock_service_says(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It propagates even if the service's table is gone."""

    def gone(*_: object) -> Any:
        raise SettingError("job.coordinator.backend", "there is no table")

    with pytest.raises(KeyError, match="mine"), of(backend).turn():
        monkeypatch.setattr(backend, "write", gone)
        raise KeyError("mine")


def test_a_silent_service_after_settling_is_no_turn(backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job raises `TurnBlockedError`, after which a stream restarts."""
    record = open_write(grant(Record("lock"), job("dead"), "dead", "", 0), ONE)
    backend.write(end(record, End.EXPIRED, 0), None)

    def settle(*_: object) -> None:
        monkeypatch.setattr(backend, "write", silent)

    def silent(*_: object) -> Any:
        raise StoreError("no answer")

    with pytest.raises(TurnBlockedError, match=r"is not settled \(no answer\)"):
        of(backend, settle=settle).lock()


def test_a_service_is_asked_again_soon_also_by_a_job_that_polls_seldom(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pause is at most a second, since the successors wait for the release."""
    pauses: list[float] = []
    coordinator = of(backend, poll_s=60)
    coordinator.lock()
    monkeypatch.setattr("safewriter.coordination.coordinator.time.sleep", pauses.append)
    monkeypatch.setattr(backend, "write", silent_twice(silent_twice(backend.write)))
    assert coordinator.unlock()
    assert set(pauses) == {1.0}
