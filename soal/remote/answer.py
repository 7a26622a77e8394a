"""Lambda's answer to an invocation, as the service and its emulator give it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from safewriter.parsing import parsed

__all__ = ["Answer", "FunctionError", "answer_of"]

_TIMED_OUT: Final = re.compile(r"Task timed out after \d+(\.\d+)? seconds")


@dataclass(frozen=True, slots=True)
class FunctionError:
    """Lambda's report of a handler that raised: the class, and the text."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one event. With `timed_out` the function was killed; with `error` its handler raised."""

    payload: Any
    error: FunctionError | None
    timed_out: bool
    duration_ms: int


def answer_of(text: str, duration_ms: int) -> Answer:
    """Read an answer of Lambda's, or of the emulator's, whose answers all have the status 200."""
    try:
        payload = parsed(text) if text else None
    except ValueError:
        payload = text
    if isinstance(payload, str) and _TIMED_OUT.fullmatch(payload.strip()):
        return Answer(payload, None, timed_out=True, duration_ms=duration_ms)
    error = None
    if isinstance(payload, dict) and "errorType" in payload:
        error = FunctionError(str(payload["errorType"]), str(payload.get("errorMessage", "")))
        if _TIMED_OUT.search(error.message):
            return Answer(payload, error, timed_out=True, duration_ms=duration_ms)
    return Answer(payload, error, timed_out=False, duration_ms=duration_ms)
