from __future__ import annotations

import json
from typing import Any

import pytest

from handler.outcome.outcome import State
from handler.outcome.response import Memory, Result, Timings, Versions
from scripts.lambda_answer import FunctionError, Invocation
from scripts.soal.invocation.report import report_of


def document(state: State, **fields: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "run_id": "r",
        "client_token": None,
        "attempt": 1,
        "previous_run_id": None,
        "name": None,
        "state_details": "…",
        "exit_code": 0,
        "signal": None,
        "error": None,
        "writes": (),
        "timings": Timings(total_ms=1, remaining_ms=1),
        "cold_start": True,
        "memory": Memory(limit_mb=1, peak_mb=None),
        "versions": Versions(soal=None, spark=None, delta=None, iceberg=None),
        "warnings": (),
        "log_tail": (),
        "result_uri": None,
        **fields,
    }
    return Result(state=state, **values).document()


ERROR = {"type": "T", "message": "m", "field": None, "retryable": False, "usage": False}


def answer(payload: Any = None, error: FunctionError | None = None, *, timed_out: bool = False) -> Invocation:
    return Invocation(payload, error, timed_out=timed_out, duration_ms=1)


def test_a_returned_document_is_the_result() -> None:
    """SUCCESS comes back as the payload and exits 0."""
    read = report_of(answer(document(State.SUCCESS)), 60)
    assert read.result is not None
    assert (read.result.state, read.exit_code, read.problem) == (State.SUCCESS, 0, None)


@pytest.mark.parametrize(
    ("state", "error", "expected"),
    [
        (State.FAILED, ERROR, 1),
        (State.UNKNOWN, ERROR, 1),
        (State.FAILED, {**ERROR, "usage": True}, 2),
        (State.FAILED, {**ERROR, "retryable": True}, 75),
        (State.TIMED_OUT, {**ERROR, "retryable": True}, 124),
        (State.INCOMPLETE, ERROR, 124),
    ],
)
def test_a_raised_document_is_the_result_too(state: State, error: dict[str, Any], expected: int) -> None:
    """A failure arrives as the message of the function error, and its state gives the exit code."""
    raised = FunctionError("JobFailed", json.dumps(document(state, error=error)))
    read = report_of(answer(error=raised), 60)
    assert read.result is not None
    assert (read.result.state, read.exit_code) == (state, expected)


def test_the_emulators_own_timeout_is_no_result() -> None:
    """Lambda's kill has no document: exit 124, and the message says what settles the writes."""
    read = report_of(answer("Task timed out after 60.00 seconds", timed_out=True), 60)
    assert read.result is None
    assert read.exit_code == 124
    assert read.problem is not None
    assert "60 s" in read.problem
    assert "clientToken" in read.problem


@pytest.mark.parametrize(
    "invocation",
    [
        answer("hello"),
        answer({"no": "result"}),
        answer(error=FunctionError("Runtime.ExitError", "exit status 3")),
        answer(error=FunctionError("JobFailed", "{")),
        answer(error=FunctionError("ImportError", json.dumps(document(State.SUCCESS)))),
    ],
)
def test_anything_else_is_a_failure_that_says_what_came(invocation: Invocation) -> None:
    """A crash, another handler's answer, or half a document: exit 1 and no result."""
    read = report_of(invocation, 60)
    assert (read.result, read.exit_code) == (None, 1)
    assert read.problem
