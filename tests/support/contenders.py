"""Jobs that contend for one lock in a test: real processes, or threads for a lock within one process."""

from __future__ import annotations

import json
import signal
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypeVar

from safewriter.coordination.configuration import Configuration
from safewriter.objects.store import StoreError
from tests.support.processes import Child
from tests.support.turn_player import Events, Player
from tests.support.waiting import BUSY_S, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from safewriter.coordination.backend import Backend, Connection, Stored
    from safewriter.coordination.record import Record

__all__ = ["Contender", "ProcessContender", "ThreadContender", "Wrapped"]

_T = TypeVar("_T")


class Contender(Protocol):
    """A job that follows commands (`Player`), and can be killed, frozen and thawed."""

    def tell(self, line: str) -> Callable[[], str]:
        """Send it a command; the returned function waits for the answer."""
        ...

    def ask(self, line: str) -> str: ...
    def kill(self) -> None: ...
    def freeze(self) -> None: ...
    def thaw(self) -> None: ...


class ProcessContender:
    """A job in a process of its own."""

    def __init__(
        self, mapping: Mapping[str, str], events: str, environment: Mapping[str, str], *, skew_s: float = 0
    ) -> None:
        arguments = (json.dumps(dict(mapping)), events, str(skew_s))
        self._child = Child("tests.support.turn_player", *arguments, environment=environment)
        self._told = 0

    def tell(self, line: str) -> Callable[[], str]:
        number, self._told = self._told, self._told + 1
        self._child.tell(line)
        return lambda: self._answer(number)

    def ask(self, line: str) -> str:
        return self.tell(line)()

    def kill(self) -> None:
        self._child.kill()

    def freeze(self) -> None:
        self._child.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._child.signal(signal.SIGCONT)

    def _answer(self, number: int) -> str:
        def found() -> str | None:
            return next((line for line in tuple(self._child.lines) if line.startswith(f"{number} ")), None)

        until(lambda: found() is not None or self._child.process.poll() is not None, timeout_s=BUSY_S)
        answer = found()
        assert answer is not None, self._child.said()
        return answer.partition(" ")[2]


class Wrapped:
    """A backend that passes each request through `around`."""

    def __init__(
        self, backend: Backend, around: Callable[[str, Callable[[], _T]], _T], *, server: str | None = None
    ) -> None:
        self._backend, self._around = backend, around
        self.server = backend.server if server is None else server

    def read(self, lock: str) -> Stored | None:
        return self._around("read", lambda: self._backend.read(lock))  # type: ignore[arg-type, return-value]

    def write(self, record: Record, after: Stored | None) -> Stored:
        return self._around("write", lambda: self._backend.write(record, after))  # type: ignore[arg-type, return-value]

    def wait(self, seen: Stored | None, timeout_s: float, after: str = "") -> None:
        self._backend.wait(seen, timeout_s, after)

    def locks(self) -> Iterator[str]:
        return self._backend.locks()

    def listen(self, listener: Callable[[Connection], None]) -> None:
        self._backend.listen(listener)

    def close(self) -> None:
        self._backend.close()


class ThreadContender:
    """A job in a thread, with its renewals. Once killed, its requests fail; while frozen, they wait."""

    def __init__(self, mapping: Mapping[str, str], events: str, backend: Backend) -> None:
        self._thawed = threading.Event()
        self._thawed.set()
        self._is_dead = False
        self._thread = ThreadPoolExecutor(1)
        self._player = Player(Configuration.from_mapping(mapping), Events(events), Wrapped(backend, self._around))

    def _around(self, _: str, request: Callable[[], _T]) -> _T:
        self._thawed.wait(BUSY_S)
        if self._is_dead:
            raise StoreError("this job is dead", denied=True)
        return request()

    def tell(self, line: str) -> Callable[[], str]:
        answer: Future[str] = self._thread.submit(self._player.do, line)
        return lambda: answer.result(BUSY_S)

    def ask(self, line: str) -> str:
        return self.tell(line)()

    def kill(self) -> None:
        self._is_dead = True
        self._thawed.set()
        self._thread.shutdown()

    def freeze(self) -> None:
        self._thawed.clear()

    def thaw(self) -> None:
        self._thawed.set()
