"""What an invocation came to: the job's result, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from handler.outcome.response import Result, exit_status
from safewriter.parsing import parsed
from scripts.soal.console.problem import EXIT_DEADLINE, EXIT_FAILED

if TYPE_CHECKING:
    from scripts.lambda_answer import Invocation

__all__ = ["Report", "report_of"]


@dataclass(frozen=True, slots=True)
class Report:
    """What an invocation came to: the result document, or a problem in the words of Lambda or its emulator."""

    result: Result | None
    problem: str | None
    exit_code: int
    duration_ms: int


def report_of(invocation: Invocation, timeout_s: int | None) -> Report:
    """Read the answer of a function, whose timeout may not be known."""
    if invocation.timed_out:
        limit = "" if timeout_s is None else f" of {timeout_s} s"
        problem = (
            f"the function was killed at its timeout{limit} before the handler had answered; what it had"
            " begun to write is settled by the next invocation with the same clientToken"
        )
        return Report(None, problem, EXIT_DEADLINE, invocation.duration_ms)
    error = invocation.error
    try:
        payload = parsed(error.message) if error is not None and error.type == "JobFailed" else invocation.payload
        result = None if error is not None and error.type != "JobFailed" else Result.model_validate(payload)
    except (ValueError, ValidationError):
        result = None
    if result is None:
        what = str(invocation.payload)[:2000] if error is None else f"{error.type}: {error.message}"
        return Report(None, f"the function did not answer with a result: {what}", EXIT_FAILED, invocation.duration_ms)
    return Report(result, None, exit_status(result), invocation.duration_ms)
