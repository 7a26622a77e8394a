"""Run calls on the main thread. A JVM dies with the thread that started it, and the durable SDK runs steps on threads
that end with the invocation.
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
    """Carries out, on the thread in `serve`, the calls that other threads pass to `run`."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()

    def serve(self, act: Callable[[], _T]) -> _T:
        """Call `act` on another thread; carry out its `run` calls on this thread until it returns."""
        with ThreadPoolExecutor(1, thread_name_prefix="durable") as pool:
            future = pool.submit(act)
            future.add_done_callback(lambda _: self._calls.put(None))
            while (call := self._calls.get()) is not None:
                call()
            return future.result()

    def run(self, act: Callable[[], _T]) -> _T:
        """Call `act` on the thread in `serve`; return its value or raise its error."""
        future: Future[Any] = Future()
        self._calls.put(partial(_carry_out, act, future))
        result: _T = future.result()
        return result


def _carry_out(act: Callable[[], object], future: Future[Any]) -> None:
    try:
        future.set_result(act())
    except BaseException as error:  # noqa: BLE001 - raised again on the calling thread
        future.set_exception(error)
