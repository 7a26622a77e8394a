"""The command line's report of an invocation: result document, or the reason why there is none, and an exit code."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import typer

from handler.outcome.result import ErrorResult, Memory, Result, Timings, Versions, WriteResult
from handler.outcome.state import State
from soal.console.output import Output
from soal.console.problem import Problem
from soal.invocation.report import Report, conclude, report_of
from soal.remote.answer import Answer, FunctionError


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


def answer(payload: Any = None, error: FunctionError | None = None, *, timed_out: bool = False) -> Answer:
    return Answer(payload, error, timed_out=timed_out, duration_ms=1)


def test_a_returned_document_is_the_result() -> None:
    """A returned SUCCESS document is the result, with exit code 0."""
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
    """A raised document is the result, and its state gives the exit code."""
    raised = FunctionError("JobFailed", json.dumps(document(state, error=error)))
    read = report_of(answer(error=raised), 60)
    assert read.result is not None
    assert (read.result.state, read.exit_code) == (state, expected)


def test_the_emulators_own_timeout_is_no_result() -> None:
    """After Lambda's kill there is no document: exit code 124, and a message about how writes are settled."""
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
def test_anything_else_is_a_failure_that_says_what_came(invocation: Answer) -> None:
    """A crash, another handler's answer, or half a document gives exit code 1 and no result."""
    read = report_of(invocation, 60)
    assert (read.result, read.exit_code) == (None, 1)
    assert read.problem


RESULT = Result(
    run_id="r",
    client_token="t",
    attempt=1,
    previous_run_id=None,
    name=None,
    state=State.TIMED_OUT,
    state_details="the deadline came [bold]first[/bold]",
    exit_code=124,
    signal=None,
    error=ErrorResult(type="DeadlineExceeded", message="m", field=None, retryable=True, usage=False),
    writes=(
        WriteResult(
            table="s3://lake/t",
            format="delta",
            step="november",
            status="rolled_back",
            version=None,
            rows=22_248,
            bytes=None,
            reason="deadline",
            undo_refused=None,
            checkpoint="s3://c/checkpoints/k.json",
        ),
    ),
    timings=Timings(total_ms=12_345, remaining_ms=0),
    cold_start=True,
    memory=Memory(limit_mb=3008, peak_mb=512),
    versions=Versions(soal=None, spark=None, delta=None, iceberg=None),
    warnings=("look [here]",),
    log_tail=("Traceback [/x]",),
    result_uri="s3://c/results/r/run_result.json",
)
REPORT = Report(RESULT, None, 124, 1)


def concluded(report: Report, capsys: pytest.CaptureFixture[str], *, as_json: bool = False) -> tuple[int, str]:
    with pytest.raises(typer.Exit) as ended:
        conclude(Output(as_json=as_json), report, todo="look")
    return ended.value.exit_code, capsys.readouterr().out


def test_a_program_reads_the_result_document(capsys: pytest.CaptureFixture[str]) -> None:
    """With --json the result document is printed; the exit code is the result's."""
    code, out = concluded(REPORT, capsys, as_json=True)
    assert (code, json.loads(out)) == (124, RESULT.document())


def test_a_person_reads_state_verdict_numbers_and_the_way_on(capsys: pytest.CaptureFixture[str]) -> None:
    """The summary has state, tables, verdicts and times; brackets in texts are shown verbatim."""
    _, text = concluded(REPORT, capsys)
    for part in (
        "TIMED_OUT",
        "the deadline came [bold]first[/bold]",
        "s3://lake/t",
        "november",
        "rolled_back",
        "22,248",
        "total 12.3 s",
        "left 0.0 s",
        "512 of 3008 MB",
        "look [here]",
        "Traceback [/x]",
        "s3://c/results/r/run_result.json",
    ):
        assert part in text


def test_an_error_that_the_state_tells_is_not_told_again_at_the_write(capsys: pytest.CaptureFixture[str]) -> None:
    """A program finds it in both."""
    error, (write,) = "UsageError: no bucket", RESULT.writes
    writes = (write.model_copy(update={"reason": f"the block was not entered ({error})"}),)
    result = RESULT.model_copy(update={"state_details": f"{error} (job.py, line 5)", "writes": writes})
    _, text = concluded(replace(REPORT, result=result), capsys)
    assert text.count(error) == 1
    assert "the block was not entered" in text
    other = replace(REPORT, result=result.model_copy(update={"state_details": "another"}))
    assert f"the block was not entered ({error})" in concluded(other, capsys)[1]


def test_the_last_lines_are_not_shown_again_below_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    """A program still reads them in the document."""
    for as_json in (False, True):
        with pytest.raises(typer.Exit):
            conclude(Output(as_json=as_json), REPORT, todo="look", has_shown_log=True)
        assert ("Traceback [/x]" in capsys.readouterr().out) is as_json


def test_without_a_result_there_is_a_problem() -> None:
    """Without a result the problem has the report's text and exit code, and a remedy."""
    with pytest.raises(Problem, match="killed") as caught:
        conclude(Output(as_json=True), Report(None, "killed", 124, 1), todo="look")
    assert (caught.value.exit_code, caught.value.todo) == (124, "look")


def test_the_attempts_of_an_execution_have_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    """Each of several attempts has a line; a single attempt has none."""
    told = {"runId": None, "error": None, "totalMs": 61_500, "resultUri": None}
    attempts = [
        {"number": 1, "state": "INCOMPLETE", "committed": 12, **told},
        {"number": 2, "state": "SUCCESS", "committed": 5, **told},
    ]
    for listed in (attempts, attempts[1:]):
        report = report_of(answer({**document(State.SUCCESS), "attempts": listed}), None)
        conclude(Output(as_json=False), report, todo="")
        out = capsys.readouterr().out
        assert ("INCOMPLETE" in out) == ("61.5" in out) == (len(listed) > 1)


@pytest.mark.parametrize("number", [10**400, -(10**400), 2**63, "9" * 4_000])
@pytest.mark.parametrize("raised", [False, True])
def test_a_number_without_bound_is_no_result(number: int | str, *, raised: bool) -> None:
    """A result with a number of more than 64 bits is refused: Python could not divide it by 1000 to show seconds."""
    told = document(State.FAILED, error=ERROR)
    told["timings"]["totalMs"] = number
    error = FunctionError("JobFailed", json.dumps(told)) if raised else None
    read = report_of(answer(None if raised else told, error), 60)
    assert (read.result, read.exit_code) == (None, 1)
