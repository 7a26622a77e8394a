"""The CPU time that searches for secrets may take: the search itself looks at it, at each of its steps."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WITHHELD", "Effort"]

WITHHELD: Final = "(withheld: it took too long to be searched for secrets, or could not be)"
_SHARE: Final = 0.1


class Effort:
    """The CPU time that is left for the texts of a run. A text may take a tenth of it, and leaves the others theirs."""

    __slots__ = ("_cpu", "_left_s", "_share")

    def __init__(self, left_s: float = 10.0, cpu: Callable[[], float] = time.thread_time) -> None:
        self._left_s = left_s
        self._cpu = cpu
        self._share = _SHARE

    def spent_on(self, search: Callable[[Callable[[], None]], str]) -> str:
        """Return what the search of a text makes of it; it calls its argument at each step, which ends it in time.
        Nothing is shown of a text whose search ends so, or fails.
        """
        started = self._cpu()

        def look() -> None:
            if self._cpu() - started >= self._left_s * self._share:
                raise TimeoutError

        try:
            look()
            return search(look)
        except Exception:  # noqa: BLE001 - a text that was not searched leaves by no way
            return WITHHELD
        finally:
            self._left_s -= self._cpu() - started

    def end(self) -> None:
        """Let all searches end, also the one that another thread is at."""
        self._share = 0.0
