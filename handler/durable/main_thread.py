"""Work for the main thread. A JVM dies with the thread that started it, and the durable SDK calls its steps on
threads of its own, which end with the invocation.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MainThread"]

_T = TypeVar("_T")


class MainThread:
    """The thread that waits in `serve` does what others ask for with `run`."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[Callable[[], object] | None] = SimpleQueue()

    def serve(self, act: Callable[[], _T]) -> _T:
        """Carry out `act` on another thread; do on this one what it asks for, until it ends."""
        with ThreadPoolExecutor(1, thread_name_prefix="durable") as pool:
            ended = pool.submit(act)
            ended.add_done_callback(lambda _: self._asked.put(None))
            while (asked := self._asked.get()) is not None:
                asked()
            return ended.result()

    def run(self, act: Callable[[], _T]) -> _T:
        """Carry out `act` on the thread that serves; return or raise what it does."""
        done: Future[Any] = Future()
        self._asked.put(partial(_carry_out, act, done))
        result: _T = done.result()
        return result


def _carry_out(act: Callable[[], object], done: Future[Any]) -> None:
    try:
        done.set_result(act())
    except BaseException as error:  # noqa: BLE001 - it is the other thread's
        done.set_exception(error)
