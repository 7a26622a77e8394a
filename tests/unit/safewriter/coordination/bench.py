"""Jobs at one lock, with a clock that only the test moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safewriter.coordination.acquiring import Acquirer, Times
from safewriter.coordination.backend import Stored
from safewriter.coordination.backends.memory import MemoryBackend
from safewriter.coordination.configuration import Configuration
from safewriter.coordination.coordinator import JobCoordinator
from safewriter.coordination.record import OpenWrite, Record
from safewriter.coordination.transitions import grant, open_write
from safewriter.coordination.turn import Turn
from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.coordination.backend import Backend, Connection

__all__ = ["WRITE", "Clock", "SlowBackend", "acquirer", "change", "coordinator_of", "held", "job", "now_of", "turn_of"]

WRITE = OpenWrite("s3://checkpoints", "key", 1)


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
    """A request is served after `latency_s` and answered after as long again; a wait takes its whole timeout."""

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

    def wait(self, seen: Stored | None, timeout_s: float, after: str = "") -> None:
        self.clock.now_s += timeout_s

    def listen(self, listener: Callable[[Connection], None]) -> None:
        self.listeners.append(listener)


def acquirer(backend: Backend, clock: Clock, nonce: str = "nonce", **more: Any) -> Acquirer:
    """Return the acquirer of a job."""
    return Acquirer(backend, job(**more), nonce, "run", clock_s=clock)


def turn_of(backend: Backend, clock: Clock, nonce: str = "nonce", **more: Any) -> Turn:
    """Acquire a turn on the free lock, and return it without its renewals."""
    asking = acquirer(backend, clock, nonce, **more)
    stored, times = asking.acquire()
    assert isinstance(times, Times)
    return Turn(backend, asking.configuration, stored, times, clock_s=clock)


def now_of(backend: MemoryBackend) -> Record:
    """Return the record without a request."""
    return backend._records["lock"].record


def held(backend: SlowBackend, record: Record | None = None, *, lease_s: float = 30.0) -> Record:
    """Make another job hold the lock, with an open write."""
    record = open_write(grant(record or Record("lock"), job("other", lease_s=lease_s), "other", "", 0), WRITE)
    backend._records["lock"] = Stored(record, 1)
    return record


def change(backend: SlowBackend, change: Callable[[Record], Record]) -> None:
    """Change the record as another process does."""
    number = int(str(backend._records["lock"].version))
    backend._records["lock"] = Stored(change(now_of(backend)), number + 1)


def coordinator_of(backend: MemoryBackend, settled: list[OpenWrite] | None = None, **more: Any) -> JobCoordinator:
    """Return a coordinator that asks once, and whose writes all have verdicts; `settled` gets its settled writes."""
    done = [] if settled is None else settled
    verdict: dict[str, Any] = {"settle": lambda write, _: done.append(write), "decided": lambda writes: writes}
    verdict.update({key: more.pop(key) for key in ("settle", "decided") if key in more})
    return JobCoordinator(job(**{"max_wait_s": 0, **more}), backend, **verdict)
