"""What the code under test takes from `threading` and `concurrent.futures`, on the simulation's threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from tests.lab.campaign.schedules.simulation import SECOND, Actor, current, simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["Event", "Executor", "Lock", "Thread", "Timer"]

_T = TypeVar("_T")


class Thread:
    """`threading.Thread`: daemon or not, it dies with its process."""

    def __init__(
        self, *, target: Callable[..., object], args: tuple[Any, ...] = (), name: str = "", daemon: bool | None = None
    ) -> None:
        self.daemon = daemon
        self._work = lambda: target(*args)
        self._name = name
        self._actor: Actor | None = None

    def start(self) -> None:
        self._actor = simulation().spawn(current().process, self._work, self._name)
        self._actor.daemon = bool(self.daemon)

    def join(self, timeout: float | None = None) -> None:
        world, actor = simulation(), self._actor
        if actor is None or actor.done:
            return
        if timeout is None:
            world.join(actor)
            return
        actor.joined.append((world.actor, world.actor.waits))
        world.sleep(int(timeout * SECOND))

    def is_alive(self) -> bool:
        return self._actor is not None and not self._actor.done


class Timer:
    """`threading.Timer`."""

    def __init__(self, interval: float, function: Callable[..., object], args: tuple[Any, ...] = ()) -> None:
        self._delay = int(interval * SECOND)
        self._cancelled = False
        self._work = lambda: self._cancelled or function(*args)
        self.daemon = True

    def start(self) -> None:
        simulation().spawn(current().process, self._work, "timer", self._delay).daemon = self.daemon

    def cancel(self) -> None:
        self._cancelled = True


class Event:
    """`threading.Event`."""

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: list[tuple[Actor, int]] = []

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        _wake(self._waiting)

    def wait(self, timeout: float) -> bool:
        if not self._is_set:
            world = simulation()
            self._waiting.append((world.actor, world.actor.waits))
            world.sleep(int(timeout * SECOND))
        return self._is_set


class Lock:
    """`threading.Lock`."""

    def __init__(self) -> None:
        self._holder: Actor | None = None
        self._waiting: list[tuple[Actor, int]] = []

    def acquire(self, *, timeout: float = -1) -> bool:
        world = simulation()
        until = world.now + int(timeout * SECOND) if timeout >= 0 else None
        while self._holder is not None:
            if until is not None and world.now >= until:
                return False
            self._waiting.append((world.actor, world.actor.waits))
            if until is None:
                world.wait()
            else:
                world.sleep(until - world.now)
        self._holder = world.actor
        return True

    def release(self) -> None:
        self._holder = None
        _wake(self._waiting)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class Future(Generic[_T]):
    """`concurrent.futures.Future`."""

    def __init__(self, work: Callable[[], _T]) -> None:
        self._work = work
        self._result: _T | None = None
        self._error: Exception | None = None
        self.actor = simulation().spawn(current().process, self._carry_out, "pool")

    def _carry_out(self) -> None:
        try:
            self._result = self._work()
        except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
            self._error = error

    def result(self) -> _T:
        simulation().join(self.actor)
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]


class Executor:
    """`concurrent.futures.ThreadPoolExecutor`, with a thread for each piece of work, `max_workers` at a time."""

    def __init__(self, max_workers: int) -> None:
        self._max_workers = max_workers
        self._futures: list[Future[Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for future in self._futures:
            simulation().join(future.actor)

    def submit(self, work: Callable[..., _T], *args: Any) -> Future[_T]:
        future: Future[_T] = Future(lambda: work(*args))
        self._futures.append(future)
        return future

    def map(self, work: Callable[..., _T], *many: Iterable[Any]) -> Iterator[_T]:
        todo = [*zip(*many, strict=False)]
        for begin in range(0, len(todo), self._max_workers):
            futures = [self.submit(work, *args) for args in todo[begin : begin + self._max_workers]]
            for future in futures:
                yield future.result()


def _wake(waiting: list[tuple[Actor, int]]) -> None:
    for actor, waits in waiting:
        if actor.waits == waits:
            simulation().wake(actor)
    waiting.clear()
