"""Truncate a result to a size limit; the document at its URI stays complete."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from handler.outcome.result import Result, WriteResult

__all__ = ["Limits", "answerable", "cut", "raisable"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest number of writes and lines in a result, and of characters in each of its texts."""

    writes: int
    lines: int
    text: int


_ANSWER_MAX_BYTES: Final = 240_000
"""Lambda fails an invocation whose answer exceeds 6 MB. The failure queue takes 1 MiB, including the event, and a state
of Step Functions 256 KiB.
https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html
"""
_ERROR_MAX: Final = 30_000
"""Of a failed task Step Functions keeps 32,768 characters as its `Cause`: this text with the type and the traceback of
the error. The half of a text would be no JSON, and a state machine could not read the result.
https://docs.aws.amazon.com/step-functions/latest/apireference/API_TaskFailedEventDetails.html
"""
_CUTS: Final = (
    *(Limits(500, 200, 4000), Limits(100, 50, 1000), Limits(40, 20, 400), Limits(20, 10, 200)),
    *(Limits(5, 5, 200), Limits(1, 1, 100)),
)


def answerable(result: Result) -> Result:
    """Truncate a result that is returned as far as Lambda, the failure queue and Step Functions require."""
    # A caller may have the document as a text, and a state machine that text in one.
    return _fitting(result, lambda text: len(json.dumps(json.dumps(text))) <= _ANSWER_MAX_BYTES)


def raisable(result: Result) -> Result:
    """Truncate a result that is the message of an error, which is a text inside a JSON document, likewise."""
    return _fitting(result, lambda text: len(json.dumps(text)) <= _ERROR_MAX)


def _fitting(result: Result, fits: Callable[[str], bool]) -> Result:
    answer = result
    for limits in _CUTS:
        if fits(json.dumps(answer.document(), ensure_ascii=False)):
            break
        answer = cut(result, limits)
    return answer


def cut(result: Result, limits: Limits) -> Result:
    """Truncate the result to `limits`, dropping committed writes first; a warning says how many writes are dropped."""
    first = sorted(result.writes, key=lambda write: write.status == "committed")[: limits.writes]
    ids = {id(write) for write in first}
    writes = tuple(_short(write, limits) for write in result.writes if id(write) in ids)
    left_out = len(result.writes) - len(writes)
    remark = (f"{left_out} writes are left out here; the document at resultUri has all",) if left_out else ()
    error = result.error
    return result.model_copy(
        update={
            "state_details": _text(result.state_details, limits),
            "error": None
            if error is None
            else error.model_copy(
                update={
                    "type": _text(error.type, limits),
                    "message": _text(error.message, limits),
                    "field": None if error.field is None else _text(error.field, limits),
                }
            ),
            "writes": writes,
            "warnings": (*(_text(text, limits) for text in result.warnings[: limits.lines]), *remark),
            "log_tail": tuple(_text(text, limits) for text in result.log_tail[-limits.lines :]),
        }
    )


def _short(write: WriteResult, limits: Limits) -> WriteResult:
    names = ("table", "step", "reason", "undo_refused", "incomplete")
    texts = {name: text for name in names if (text := getattr(write, name)) is not None}
    return write.model_copy(update={name: _text(text, limits) for name, text in texts.items()})


def _text(text: str, limits: Limits) -> str:
    return text if len(text) <= limits.text else f"{text[: limits.text]}…"
