"""An age on the command line: `7d`, `36h`, `90m`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from soal.console.problem import Problem

SAFE: Final = timedelta(hours=9)
"""With a shorter age, a write in progress may lose its files: the longest run that Lambda has takes eight hours."""

_AGE: Final = re.compile(r"(\d{1,6})([dhm])")
_UNITS: Final = {"d": "days", "h": "hours", "m": "minutes"}


def parse_age(text: str, *, allow_young: bool) -> timedelta:
    """Return the age. Raises `Problem` if it is malformed, or too short without `allow_young`."""
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise Problem(f"--older-than {text!r} is not an age", todo="write it as 7d, 36h or 90m")
    age = timedelta(**{_UNITS[match[2]]: int(match[1])})
    if age < SAFE and not allow_young:
        raise Problem(
            f"--older-than {text} is less than nine hours, and a write that runs now has files that no version refers"
            " to",
            todo="give it more, or, if nobody writes to the table, add --allow-young",
        )
    return age
