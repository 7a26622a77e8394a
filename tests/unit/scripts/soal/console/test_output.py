from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from handler.outcome.outcome import State
from handler.outcome.response import ErrorResult, Memory, Result, Timings, Versions, WriteResult
from scripts.soal.console.output import output
from scripts.soal.console.problem import Problem
from scripts.soal.doctor.finding import Finding
from scripts.soal.invocation.report import Report
from scripts.soal.local.background import LocalS3
from scripts.soal.local.inventory import BucketContent

if TYPE_CHECKING:
    from collections.abc import Callable

    from scripts.soal.console.output import Output

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
STATE = LocalS3(pid=7, started=1.5, endpoint="http://127.0.0.1:1", buckets=("a",))
FINDINGS = (Finding("Java", "fail", "there is none", "run scripts/setup"), Finding("jars", "ok", "all"))


@pytest.mark.parametrize(
    ("say", "expected"),
    [
        (lambda out: out.invocation(REPORT), RESULT.document()),
        (lambda out: out.local(None, ()), {"running": False}),
        (
            lambda out: out.local(STATE, [BucketContent("a", 1, 2)]),
            {
                "running": True,
                "pid": 7,
                "started": 1.5,
                "endpoint": "http://127.0.0.1:1",
                "buckets": [{"name": "a", "objects": 1, "bytes": 2}],
            },
        ),
        (
            lambda out: out.findings(FINDINGS),
            [
                {"name": "Java", "status": "fail", "detail": "there is none", "remedy": "run scripts/setup"},
                {"name": "jars", "status": "ok", "detail": "all", "remedy": ""},
            ],
        ),
    ],
)
def test_json_is_one_value_on_stdout(
    say: Callable[[Output], None], expected: object, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program reads stdout as JSON, and finds nothing on stderr."""
    say(output(is_json=True))
    captured = capsys.readouterr()
    assert json.loads(captured.out) == expected
    assert captured.err == ""


def test_a_person_reads_state_verdict_numbers_and_the_way_on(capsys: pytest.CaptureFixture[str]) -> None:
    """The summary says what happened, to which table, how long it took; brackets in texts stay as they are."""
    output(is_json=False).invocation(REPORT)
    text = capsys.readouterr().out
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


def test_a_pipe_gets_no_colours_and_whole_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal there are no escape codes, and long texts are not folded."""
    details = "x" * 300
    output(is_json=False).invocation(Report(RESULT.model_copy(update={"state_details": details}), None, 1, 1))
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert details in text


@pytest.mark.parametrize("is_json", [True, False])
def test_talk_and_problems_go_to_stderr(capsys: pytest.CaptureFixture[str], *, is_json: bool) -> None:
    """In both forms stdout is for data only, and a problem comes with what to do."""
    out = output(is_json=is_json)
    out.remark("started")
    out.problem(Problem("no [endpoint]", todo="start one"))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == ["started", "soal: no [endpoint]", "  To do: start one"]


def test_findings_for_a_person_carry_their_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    """What must be done stands below what was found."""
    output(is_json=False).findings(FINDINGS)
    text = capsys.readouterr().out
    assert "there is none" in text
    assert "To do: run scripts/setup" in text
