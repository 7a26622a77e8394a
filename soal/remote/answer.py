"""Answers to an invocation, from Lambda or its emulator."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from safewriter.parsing import parsed

_TIMED_OUT: Final = re.compile(
    r"(\d{4}-\d\d-\d\dT[\d:.]+Z [0-9a-f-]{36} |RequestId: [0-9a-f-]{36} (Error: )?)?"
    r"Task timed out after \d+(\.\d+)? seconds"
)
"""It must match the whole message: a job can print such words, so a document may contain them."""
_SERVICE_ERROR: Final = "Sandbox.Timedout"
"""The class of Lambda's own error. Older answers name no class."""


@dataclass(frozen=True, slots=True)
class FunctionError:
    """An exception of the handler, as Lambda reports it."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one event. `timed_out`: Lambda killed the function. `error`: the handler raised."""

    payload: Any
    error: FunctionError | None
    timed_out: bool
    duration_ms: int


def answer_of(text: str, duration_ms: int) -> Answer:
    """Parse an answer's body, from Lambda or the emulator. The emulator answers always with status 200."""
    try:
        payload = parsed(text) if text else None
    except ValueError:
        # The emulator reports a timeout as plain text; a handler's return value is JSON.
        timed_out = _TIMED_OUT.fullmatch(text.strip()) is not None
        return Answer(text, None, timed_out=timed_out, duration_ms=duration_ms)
    if not isinstance(payload, dict) or payload.keys().isdisjoint(("errorType", "errorMessage")):
        return Answer(payload, None, timed_out=False, duration_ms=duration_ms)
    kind, message = payload.get("errorType"), str(payload.get("errorMessage", ""))
    timed_out = kind in (None, _SERVICE_ERROR) and _TIMED_OUT.fullmatch(message.strip()) is not None
    error = FunctionError("error" if kind is None else str(kind), message)
    return Answer(payload, error, timed_out=timed_out, duration_ms=duration_ms)
