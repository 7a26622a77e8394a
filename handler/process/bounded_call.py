"""Call a function that may hang, with a timeout."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OverdueError", "within"]

_T = TypeVar("_T")


class OverdueError(Exception):
    """The call did not return in time; it may still have an effect."""


class _Slot(Generic[_T]):
    def __init__(self, call: Callable[[], _T]) -> None:
        self._call = call
        self.value: _T
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.value = self._call()
        except BaseException as error:  # noqa: BLE001 - raised again on the caller's thread
            self.error = error


def within(timeout_ms: int, call: Callable[[], _T]) -> _T:
    """Return the value of `call`, or raise its error; `OverdueError` after `timeout_ms`.

    A late call continues on its own thread: use this only for calls that do no harm when late.
    """
    slot = _Slot(call)
    thread = threading.Thread(target=slot.run, name="soal-bounded", daemon=True)
    thread.start()
    thread.join(max(0, timeout_ms) / 1000)
    if thread.is_alive():
        raise OverdueError(f"no answer within {timeout_ms} ms")
    if slot.error is not None:
        raise slot.error
    return slot.value
