"""The thread that renews a lease: until it is stopped, and not before the first pause."""

from __future__ import annotations

import threading

from safewriter.block.heartbeat import Heartbeat

BOUND_S = 10.0


def test_a_heart_beats_until_it_is_stopped() -> None:
    """A beat that fails is followed by the next one."""
    beats = threading.Semaphore(0)

    def beat() -> None:
        beats.release()
        raise OSError

    heart = Heartbeat(0.001, beat)
    heart.start()

    assert all(beats.acquire(timeout=BOUND_S) for _ in range(3))
    heart.stop()
    heart._thread.join(BOUND_S)
    assert not heart._thread.is_alive()


def test_a_heart_that_is_stopped_at_once_does_not_beat() -> None:
    """The first beat comes after the first pause."""
    beats: list[int] = []
    heart = Heartbeat(3600, lambda: beats.append(1))
    heart.start()

    heart.stop()

    heart._thread.join(BOUND_S)
    assert beats == []
