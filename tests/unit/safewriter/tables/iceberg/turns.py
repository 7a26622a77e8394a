"""Settlers that take turns: each in a thread of its own, which stands before its next request until it may go on.

One that settles an Iceberg write draws ids and names as it goes. So it cannot be stopped and played again from its
beginning, as one that settles a Delta write can (`failing.py`).
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from safewriter.checkpoint import Checkpoints
from safewriter.recovery import Evidence, Recovery
from tests.unit.safewriter.failing import Network

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.objects import ObjectStore
    from safewriter.recovery import Cause
    from tests.unit.safewriter.failing import Sent
    from tests.unit.safewriter.tables.iceberg.bench import Bench

__all__ = ["Settler", "table_store"]

_T = TypeVar("_T")
_LIMIT_S = 60
_here = threading.local()


class Settler(Network):
    """One who settles the first attempt of a bench. What it asks of the SQL catalog belongs to the request before."""

    def __init__(self, bench: Bench, cause: Cause) -> None:
        super().__init__()
        self.ended = False
        self._bench = bench
        self._cause = cause
        self._may_go = threading.Semaphore(0)
        self._stands = threading.Semaphore(0)
        pool = ThreadPoolExecutor(1)
        self._verdict = pool.submit(self._settle)
        pool.shutdown(wait=False)
        self._wait(self._stands)

    def step(self, requests: int = 1) -> None:
        """Let it send that many requests more, as far as it has so many."""
        for _ in range(requests):
            if not self.ended:
                self._may_go.release()
                self._wait(self._stands)

    def finish(self) -> None:
        """Let it go on to its end. Raises what it has raised."""
        while not self.ended:
            self.step()
        self._verdict.result()

    def call(self, sent: Sent, apply: Callable[[], _T]) -> _T:
        """Send one request, when it may."""
        self.sent.append(sent)
        self._stands.release()
        self._wait(self._may_go)
        return apply()

    def _settle(self) -> None:
        _here.settler = self
        lake, bench = self.store(self._bench.lake), self._bench
        try:
            recovery = Recovery(Checkpoints(self.store(bench.bucket)), lambda _uri: lake, clock=bench.clock)
            recovery.settle(bench.write.key, self._cause, Evidence(epoch=1))
        finally:
            self.ended = True
            self._stands.release()

    @staticmethod
    def _wait(semaphore: threading.Semaphore) -> None:
        assert semaphore.acquire(timeout=_LIMIT_S)


def table_store(bench: Bench) -> Callable[[str], ObjectStore]:
    """Return how pyiceberg opens a store by itself when it commits: as the settler does in whose thread it is."""

    def opened(uri: str) -> ObjectStore:
        settler: Settler | None = getattr(_here, "settler", None)
        store = bench.table_store(uri)
        return store if settler is None else settler.store(store)

    return opened
