"""Retry while S3 does not answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from safewriter.errors import UnknownOutcomeError
from safewriter.objects.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["until_answered"]

_PAUSE_S: Final = 0.5
_PAUSE_MAX_S: Final = 8.0


def until_answered(
    ask: Callable[[], None],
    left_s: Callable[[float], float],
    sleep: Callable[[float], None],
    now_s: Callable[[], float] = time.monotonic,
) -> None:
    """Call `ask` until S3 answers. `left_s` takes the seconds spent so far, pauses included, and returns the seconds
    left, which must reach 0.

    Raises the error of `ask`: at once if a retry cannot help, else when no time is left.
    """
    pause_s, waited_s = _PAUSE_S, 0.0
    while True:
        asked_s = now_s()
        try:
            ask()
        except (StoreError, UnknownOutcomeError) as error:
            waited_s += now_s() - asked_s
            nap_s = min(pause_s, left_s(waited_s))
            if not _may_answer(error) or nap_s <= 0:
                raise
        else:
            return
        sleep(nap_s)
        waited_s += nap_s
        pause_s = min(2 * pause_s, _PAUSE_MAX_S)


def _may_answer(error: Exception) -> bool:
    """Return whether a retry may help: not if S3 refuses the caller, nor if the table itself does not decide."""
    cause = error.__cause__ if isinstance(error, UnknownOutcomeError) else error
    return isinstance(cause, StoreError) and not cause.denied
