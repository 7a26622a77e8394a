"""The background renewals of a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.coordination.record import End
from safewriter.coordination.transitions import end, grant
from safewriter.errors import TurnLostError
from tests.support.waiting import BUSY_S
from tests.unit.safewriter.coordination.bench import Clock, SlowBackend, job, now_of, turn_of

if TYPE_CHECKING:
    from safewriter.coordination.turn import Turn


def bench(latency_s: float = 0.0) -> tuple[Clock, SlowBackend, Turn]:
    clock = Clock()
    backend = SlowBackend(clock, latency_s)
    return clock, backend, turn_of(backend, clock, lease_s=10)


class Waits:
    """Stands for the event that the renewals wait on; each wait advances the clock."""

    def __init__(self, clock: Clock, most: int) -> None:
        self.clock, self.most = clock, most
        self.waits: list[float] = []
        self.was_set = False

    def wait(self, timeout_s: float) -> bool:
        self.waits.append(round(timeout_s, 2))
        self.clock.now_s += timeout_s
        return self.was_set or len(self.waits) > self.most

    def set(self) -> None:
        self.was_set = True


def test_a_turn_is_renewed_each_third_of_its_lease() -> None:
    """The turn is held as long as the renewals succeed."""
    clock, backend, turn = bench()
    turn._stopped = waits = Waits(clock, 6)  # type: ignore[assignment]
    turn._renewing()
    assert waits.waits == [3.33] * 7
    assert (now_of(backend).holder or pytest.fail("free")).beat == 6
    assert turn.left_s > 0


def test_a_renewal_without_an_answer_is_tried_again_soon_until_the_lease_has_ended() -> None:
    """By then the holder has stopped itself, and the renewals end."""
    clock, backend, turn = bench()
    backend.fail = lambda _: "refused"
    turn._stopped = waits = Waits(clock, 1000)  # type: ignore[assignment]
    turn._renewing()
    assert waits.waits[:2] == [3.33, 0.47]
    assert min(waits.waits) == 0.05
    assert len(waits.waits) < 100
    with pytest.raises(TurnLostError, match="renewed in time: no answer"):
        turn.check()


def test_renewals_end_with_the_turn() -> None:
    """The thread ends."""
    _, backend, turn = bench()
    turn.start()
    assert turn.release(End.COMPLETED)
    turn._thread.join(BUSY_S)
    assert not turn._thread.is_alive()
    assert backend.requests[-1] == "write"


def test_renewals_end_when_the_turn_is_lost() -> None:
    """They do not restore it."""
    clock, backend, turn = bench()
    taken_over = grant(end(now_of(backend), End.FORCED, 0), job("B"), "other", "", 0)
    MemoryBackend.write(backend, taken_over, backend._records["lock"])
    turn._stopped = waits = Waits(clock, 9)  # type: ignore[assignment]
    turn._renewing()
    assert waits.waits == [3.33]
    assert (now_of(backend).holder or pytest.fail("free")).beat == 0
