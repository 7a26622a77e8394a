"""Schedules as EventBridge takes them: `rate(…)` and `cron(…)`.

https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-scheduled-rule-pattern.html
"""

from __future__ import annotations

import re
from typing import Final

from aws_cron_expression_validator.validator import AWSCronExpressionError, AWSCronExpressionValidator

__all__ = ["check_schedule"]

_MAX_LENGTH: Final = 256
_FORM: Final = re.compile(r"(rate|cron)\(([^()]*)\)")
_RATE: Final = re.compile(r"([1-9][0-9]{0,8}) (minute|hour|day)(s?)")
# The package takes these, and EventBridge's reference knows none of them.
_UNDOCUMENTED: Final = re.compile(r"\*-|-\*|L-")


def check_schedule(schedule: str) -> str:
    """Return the expression as it is; `ValueError` says what is wrong, and what to write instead."""
    form = _FORM.fullmatch(schedule)
    if form is None or len(schedule) > _MAX_LENGTH:
        raise ValueError("must be rate(…) or cron(…), as rate(1 day) or cron(0 3 * * ? *)")
    kind, text = form.groups()
    if kind == "rate":
        _check_rate(text)
    else:
        _check_cron(text)
    return schedule


def _check_rate(text: str) -> None:
    rate = _RATE.fullmatch(text)
    if rate is None:
        raise ValueError("a rate is a whole number from 1 and minutes, hours or days, as rate(2 days)")
    number, unit, plural = rate.groups()
    if (number == "1") == bool(plural):
        raise ValueError(f"write rate({number} {unit}{'' if number == '1' else 's'})")


def _check_cron(text: str) -> None:
    problem = f"{text!r} has a range without an end." if _UNDOCUMENTED.search(text) else _refusal(text)
    if problem is not None:
        raise ValueError(
            f"{problem} A cron expression has six fields: minutes, hours, day of the month, month, day of the week (one"
            " of the two days is ?), year; as cron(0 3 * * ? *)"
        )


def _refusal(text: str) -> str | None:
    try:
        AWSCronExpressionValidator.validate(text)
    except AWSCronExpressionError as error:
        return str(error)
    return None
