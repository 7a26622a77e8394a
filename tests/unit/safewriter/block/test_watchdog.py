"""The threads of a block: its watchdog acts before the deadline by the clock, its heartbeat renews the lease."""

from __future__ import annotations

import itertools
import threading
from types import SimpleNamespace

import pytest

from safewriter.block.watchdog import Heartbeat, Watchdog

BOUND_S = 10.0


def test_it_acts_when_the_lead_time_has_begun() -> None:
    """A watchdog that starts too late acts at once."""
    acted = threading.Event()
    dog = Watchdog(lambda: -50, acted.set)

    dog.start()

    assert acted.wait(BOUND_S)
    assert dog.join(BOUND_S)


def test_it_acts_once_the_clock_says_so() -> None:
    """It reads the clock after each step, so it notices a thaw however long the freeze was."""
    left = itertools.chain([5, 2], itertools.repeat(-(10**9)))
    acted = threading.Event()
    dog = Watchdog(lambda: next(left), acted.set)

    dog.start()

    assert acted.wait(BOUND_S)
    assert dog.join(BOUND_S)


def test_a_stopped_one_never_acts() -> None:
    """A block that has ended in time is left alone."""
    acted = threading.Event()
    dog = Watchdog(lambda: 10**15, acted.set)
    dog.start()

    dog.stop()

    assert dog.join(BOUND_S)
    assert not acted.is_set()


def test_one_that_was_stopped_before_the_deadline_came_does_not_act_after_it() -> None:
    """The last check before acting is of the stop, not of the clock."""
    acted = threading.Event()
    dog = Watchdog(lambda: -5, acted.set)
    dog.stop()

    dog.start()

    assert dog.join(BOUND_S)
    assert not acted.is_set()


def test_join_says_that_an_act_still_runs() -> None:
    """The caller learns that it still runs."""
    begun, goes_on = threading.Event(), threading.Event()

    def act() -> None:
        begun.set()
        goes_on.wait(BOUND_S)

    dog = Watchdog(lambda: -5, act)
    dog.start()
    begun.wait(BOUND_S)

    assert not dog.join(0.0)
    goes_on.set()
    assert dog.join(BOUND_S)


def test_it_waits_no_longer_than_is_left_and_not_at_all_when_nothing_is() -> None:
    """A longer step would take from the time that `act` needs."""
    left = iter([250, 1, 0])
    waited: list[float] = []

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        return False

    acted = threading.Event()
    dog = Watchdog(lambda: next(left), acted.set)
    dog._stopped = SimpleNamespace(wait=wait, is_set=lambda: False)  # type: ignore[assignment]

    dog.start()

    assert acted.wait(BOUND_S)
    assert waited == [0.25, 0.001]


@pytest.mark.parametrize("name", ["safewriter-watchdog", "safewriter-lease"])
def test_no_thread_of_a_block_keeps_a_process_alive(name: str) -> None:
    """A script that ends inside a block ends; a thread dump shows our names."""
    one = Watchdog(lambda: 10**15, lambda: None) if name.endswith("dog") else Heartbeat(BOUND_S, lambda: None)
    one.start()
    (thread,) = [each for each in threading.enumerate() if each.name == name]
    one.stop()

    assert thread.daemon
    thread.join(BOUND_S)


def test_a_heart_beats_until_it_is_stopped(caplog: pytest.LogCaptureFixture) -> None:
    """A beat that fails is told, and followed by the next one."""
    beats = threading.Semaphore(0)

    def beat() -> None:
        beats.release()
        raise OSError("PUT leases/x: denied")

    heart = Heartbeat(0.001, beat)
    heart.start()

    assert all(beats.acquire(timeout=BOUND_S) for _ in range(3))
    heart.stop()
    heart._thread.join(BOUND_S)
    assert not heart._thread.is_alive()
    assert "may take this attempt for dead: PUT leases/x: denied" in caplog.text


def test_a_heart_that_is_stopped_at_once_does_not_beat() -> None:
    """The first beat comes after the first pause."""
    beats: list[int] = []
    heart = Heartbeat(3600, lambda: beats.append(1))
    heart.start()

    heart.stop()

    heart._thread.join(BOUND_S)
    assert beats == []
