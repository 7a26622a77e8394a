"""A limit of CPU time on the search for secrets. The search checks it at each of its steps."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WITHHELD", "Effort"]

WITHHELD: Final = "(withheld: it took too long to be searched for secrets, or could not be)"
_SHARE: Final = 0.1
_T = TypeVar("_T")


class Effort:
    """The CPU time left for the texts of one run. One text may use at most a tenth of it, so others keep their time."""

    __slots__ = ("_cpu", "_left_s", "_share")

    def __init__(self, left_s: float = 10.0, cpu: Callable[[], float] = time.thread_time) -> None:
        self._left_s = left_s
        self._cpu = cpu
        self._share = _SHARE

    def spent_on(self, search: Callable[[Callable[[], None]], _T], otherwise: _T) -> _T:
        """Return the result of `search`, or `otherwise` if it fails or takes too long.

        `search` must call its argument at each step: that call raises once the time is used up.
        """
        started = self._cpu()

        def look() -> None:
            if self._cpu() - started >= self._left_s * self._share:
                raise TimeoutError

        try:
            look()
            return search(look)
        except Exception:  # noqa: BLE001 - a text that was not searched is never shown
            return otherwise
        finally:
            self._left_s -= self._cpu() - started

    def anew(self, left_s: float) -> Effort:
        """Return another limit by the same clock, for texts that must not lack the time that these have used."""
        return Effort(left_s, cpu=self._cpu)

    def end(self) -> None:
        """End all searches, also one that runs on another thread."""
        self._share = 0.0
