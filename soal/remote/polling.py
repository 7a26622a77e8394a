"""Ask AWS again and again until an execution or a MicroVM has ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from safewriter.objects import StoreError
from soal.invocation.report import Report
from soal.remote.failure import AWS_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable

    from soal.console.problem import Problem

__all__ = ["POLL_S", "polled"]

POLL_S: Final = 2.0
_ERRORS_MAX: Final = 20
"""Consecutive errors, such as throttling or a network failure."""


def polled(
    look: Callable[[], Report | str],
    says: Callable[[str], None],
    *,
    is_refused: Callable[[Exception], bool],
    lost: Callable[[Exception], Problem],
    poll_s: float,
) -> Report:
    """Call `look` each `poll_s` seconds until it returns a report. A text that it returns is the state: `says` gets
    each new one.

    An error of AWS or of a store passes, unless it `is_refused`, or the twenty before it have not: then this function
    raises the problem that `lost` returns.
    """
    before, errors = "", 0
    while True:
        try:
            found = look()
        except (*AWS_ERRORS, StoreError) as error:
            errors += 1
            if errors > _ERRORS_MAX or is_refused(error):
                raise lost(error) from error
        else:
            if isinstance(found, Report):
                return found
            if found not in ("", before):
                says(found)
                before = found
            errors = 0
        time.sleep(poll_s)
