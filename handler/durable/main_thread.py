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
        self._calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()

    def serve(self, act: Callable[[], _T]) -> _T:
        """Carry out `act` on another thread; do on this one what it asks for, until it ends."""
        with ThreadPoolExecutor(1, thread_name_prefix="durable") as pool:
            future = pool.submit(act)
            future.add_done_callback(lambda _: self._calls.put(None))
            while (call := self._calls.get()) is not None:
                call()
            return future.result()

    def run(self, act: Callable[[], _T]) -> _T:
        """Carry out `act` on the thread that serves; return or raise what it does."""
        future: Future[Any] = Future()
        self._calls.put(partial(_carry_out, act, future))
        result: _T = future.result()
        return result


def _carry_out(act: Callable[[], object], future: Future[Any]) -> None:
    try:
        future.set_result(act())
    except BaseException as error:  # noqa: BLE001 - it is the other thread's
        future.set_exception(error)
