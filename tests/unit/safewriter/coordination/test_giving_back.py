"""How a coordinator gives a turn back: verdicts, lost answers, turns that do not count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.coordination.coordinator import JobCoordinator
from safewriter.coordination.record import End, OpenWrite
from safewriter.coordination.transitions import open_write
from safewriter.errors import TurnLostError, UnknownOutcomeError
from safewriter.objects.store import StoreError
from tests.unit.safewriter.coordination.bench import job, now_of

if TYPE_CHECKING:
    from collections.abc import Iterable


ONE = OpenWrite("s3://checkpoints", "one", 1)


@pytest.fixture
def backend() -> MemoryBackend:
    return MemoryBackend()


def of(backend: MemoryBackend, settled: list[OpenWrite] | None = None, **more: Any) -> JobCoordinator:
    done = [] if settled is None else settled
    verdict: dict[str, Any] = {"settle": lambda write, _: done.append(write), "decided": lambda writes: writes}
    verdict.update({key: more.pop(key) for key in ("settle", "decided") if key in more})
    return JobCoordinator(job(**{"max_wait_s": 0, **more}), backend, **verdict)


def silent_twice(call: Any) -> Any:
    """Let the first two calls have no answer."""
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
    """It is asked again while nobody else can have the turn; so is the bucket that knows the verdicts."""
    coordinator = of(backend, poll_s=0.001, decided=silent_twice(lambda writes: writes))
    coordinator.lock().open_write(ONE)
    monkeypatch.setattr(backend, "write", silent_twice(backend.write))
    monkeypatch.setattr(backend, "read", silent_twice(backend.read))
    assert coordinator.unlock()
    assert now_of(backend).completions == 1


def test_a_service_that_refuses_a_release_is_not_asked_again(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To wait would not help."""
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
    """The turn does not count, and nobody took it."""
    coordinator = of(backend, decided=lambda _: ())
    told = "given back with a write that has no verdict, so it does not count"
    with pytest.raises(TurnLostError, match=told), coordinator.turn() as turn:
        turn.open_write(ONE)
    assert (now_of(backend).completions, now_of(backend).unsettled) == (0, (ONE,))


def test_a_coordinator_completes_as_many_turns_as_it_takes(backend: MemoryBackend) -> None:
    """A run's name is for people, unless the run has one turn only."""
    for count, ends in ((False, [End.COMPLETED, End.COMPLETED]), (True, [End.COMPLETED, End.REPEATED])):
        backend = MemoryBackend()
        for _ in range(2):
            coordinator = JobCoordinator(job(), backend, run="run", run_has_one_turn=count)
            with coordinator.turn():
                pass
        assert [past.end for past in now_of(backend).history] == ends


@pytest.mark.parametrize("error", [UnknownOutcomeError("no verdict"), StoreError("no answer")])
def test_a_checkpoint_bucket_that_does_not_answer_keeps_no_lock(backend: MemoryBackend, error: Exception) -> None:
    """The turn ends, not completed, and the next holder settles all of its writes."""

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
    """They stand in the record only: the holder has not seen them."""
    coordinator = of(backend, decided=lambda _: ())
    turn = coordinator.lock()
    turn.is_lent = True  # type: ignore[union-attr]
    backend.write(open_write(now_of(backend), ONE), backend.read("lock"))
    assert not coordinator.unlock()
    assert now_of(backend).unsettled == (ONE,)
