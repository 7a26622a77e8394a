"""Jobs at one lock, with a clock that only the test moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safewriter.coordination.acquiring import Acquirer, Times
from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.coordination.configuration import Configuration
from safewriter.coordination.turn import Turn
from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.coordination.backend import Backend, Connection, Stored
    from safewriter.coordination.record import Record

__all__ = ["Clock", "SlowBackend", "acquirer", "job", "now_of", "turn_of"]


def job(name: str = "A", **more: Any) -> Configuration:
    """Return the configuration of a job at the lock."""
    return Configuration(**{"lock": "lock", "job": name, **more})


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class SlowBackend(MemoryBackend):
    """Each request takes a second until it is served and one until it is answered; to wait takes as long as it may.

    `fail` decides of each write whether it is applied and its reply lost ("lost"), or not even applied ("refused").
    """

    def __init__(self, clock: Clock, latency_s: float = 0.0) -> None:
        super().__init__()
        self.clock, self.latency_s = clock, latency_s
        self.fail: Callable[[Record], str] = lambda _: ""
        self.before: Callable[[], None] = lambda: None
        self.requests: list[str] = []
        self.listeners: list[Callable[[Connection], None]] = []

    def read(self, lock: str) -> Stored | None:
        self.requests.append("read")
        self.clock.now_s += self.latency_s
        found = super().read(lock)
        self.clock.now_s += self.latency_s
        return found

    def write(self, record: Record, after: Stored | None) -> Stored:
        self.requests.append("write")
        before, self.before = self.before, lambda: None
        before()
        self.clock.now_s += self.latency_s
        fault = self.fail(record)
        if fault == "refused":
            raise StoreError("no answer")
        written = super().write(record, after)
        self.clock.now_s += self.latency_s
        if fault:
            raise StoreError("no answer")
        return written

    def wait(self, seen: Stored | None, timeout_s: float) -> None:
        self.clock.now_s += timeout_s

    def listen(self, listener: Callable[[Connection], None]) -> None:
        self.listeners.append(listener)


def acquirer(backend: Backend, clock: Clock, nonce: str = "nonce", **more: Any) -> Acquirer:
    """Return a job's way to its turn."""
    return Acquirer(backend, job(**more), nonce, "run", clock_s=clock)


def turn_of(backend: Backend, clock: Clock, nonce: str = "nonce", **more: Any) -> Turn:
    """Return a turn of a job that the lock is free for, without its renewals."""
    asking = acquirer(backend, clock, nonce, **more)
    stored, times = asking.acquire()
    assert isinstance(times, Times)
    return Turn(backend, asking.configuration, stored, times, clock_s=clock)


def now_of(backend: MemoryBackend) -> Record:
    """Return the record, without a request."""
    return backend._records["lock"].record
