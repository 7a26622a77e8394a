from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from handler.outcome.outcome import State
from handler.outcome.response import Memory, Result, Timings, Versions
from scripts.emulator.rie import FunctionError, Invocation
from scripts.soal.console.problem import Problem
from scripts.soal.local.function import Function, assignments, function_variables, read_event, report
from scripts.soal.local.place import Home
from scripts.soal.target import local_target


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
    read = report(answer(document(State.SUCCESS)), 60)
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
    read = report(answer(error=raised), 60)
    assert read.result is not None
    assert (read.result.state, read.exit_code) == (state, expected)


def test_the_emulators_own_timeout_is_no_result() -> None:
    """Lambda's kill has no document: exit 124, and the message says what settles the writes."""
    read = report(answer("Task timed out after 60.00 seconds", timed_out=True), 60)
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
    read = report(invocation, 60)
    assert (read.result, read.exit_code) == (None, 1)
    assert read.problem


def test_an_event_is_a_path_inline_json_stdin_or_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All four forms of EVENT give the event."""
    file = tmp_path / "event.json"
    file.write_text('{"a": 1}', encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"a": 2}'))
    assert read_event(str(file)) == {"a": 1}
    assert read_event("-") == {"a": 2}
    assert read_event(' {"a": 3}') == {"a": 3}
    assert read_event('"s3://b/j.py"') == "s3://b/j.py"
    assert read_event("s3://b/j.py") == "s3://b/j.py"


@pytest.mark.parametrize("text", ["{", "no/such/file.json", "/", ""])
def test_what_is_no_event_is_a_usage_error(text: str) -> None:
    """Broken JSON and missing files exit 2 and name what is wrong."""
    with pytest.raises(Problem) as caught:
        read_event(text)
    assert caught.value.exit_code == 2
    assert caught.value.todo


def test_assignments_may_hold_equals_signs() -> None:
    """Only the first equals sign separates name from value; the value may be empty."""
    assert assignments(["A=1", "B=x=y", "C="]) == {"A": "1", "B": "x=y", "C": ""}


@pytest.mark.parametrize("text", ["A", "=1", ""])
def test_what_is_no_assignment_is_a_usage_error(text: str) -> None:
    """--env needs a name and an equals sign."""
    with pytest.raises(Problem) as caught:
        assignments([text])
    assert caught.value.exit_code == 2


def test_the_function_gets_the_target_the_bucket_and_what_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """--env wins over the caller's environment, which wins over the default; other variables stay outside. As on Lambda
    there is a session token.
    """
    monkeypatch.setenv("SW_WARN_BEFORE_MS", "5000")
    monkeypatch.setenv("SW_AUDIT_LOG", "false")
    monkeypatch.setenv("MINE", "1")
    home = Home(Path("/soal"))
    variables = function_variables(local_target("http://127.0.0.1:1"), "bucket", {"SW_AUDIT_LOG": "true"}, home)
    assert variables["AWS_ENDPOINT_URL_S3"] == "http://127.0.0.1:1"
    assert variables["SW_CHECKPOINT_BUCKET"] == "bucket"
    assert variables["SW_WARN_BEFORE_MS"] == "5000"
    assert variables["SW_AUDIT_LOG"] == "true"
    assert variables["SOAL_HOME"] == "/soal"
    assert variables["AWS_SESSION_TOKEN"]
    assert "MINE" not in variables


def test_without_an_emulator_the_problem_says_what_to_do(tmp_path: Path) -> None:
    """A missing binary is a problem, not a traceback."""
    function = Function({}, timeout_s=1, memory_mb=128, home=Home(tmp_path))
    with pytest.raises(Problem, match="scripts/setup"):
        function.invoke({})
