"""Lambda's answer to an invocation, as the service and its emulator give it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from safewriter.parsing import parsed

_TIMED_OUT: Final = re.compile(
    r"(\d{4}-\d\d-\d\dT[\d:.]+Z [0-9a-f-]{36} |RequestId: [0-9a-f-]{36} (Error: )?)?"
    r"Task timed out after \d+(\.\d+)? seconds"
)
"""The whole message. A document may hold such words, too: a job can print them."""
_SERVICE_ERROR: Final = "Sandbox.Timedout"
"""The class of the service's own error; before there was one, it named none."""


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
        # The emulator's words are no JSON, and what a handler returns is.
        timed_out = _TIMED_OUT.fullmatch(text.strip()) is not None
        return Answer(text, None, timed_out=timed_out, duration_ms=duration_ms)
    if not isinstance(payload, dict) or payload.keys().isdisjoint(("errorType", "errorMessage")):
        return Answer(payload, None, timed_out=False, duration_ms=duration_ms)
    kind, message = payload.get("errorType"), str(payload.get("errorMessage", ""))
    timed_out = kind in (None, _SERVICE_ERROR) and _TIMED_OUT.fullmatch(message.strip()) is not None
    error = FunctionError("error" if kind is None else str(kind), message)
    return Answer(payload, error, timed_out=timed_out, duration_ms=duration_ms)
