"""The handler's result document fits its schema, and gives a shell an exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import handler.outcome.result
from handler.json_document import schema_text
from handler.outcome.result import (
    ErrorResult,
    Memory,
    Result,
    Timings,
    Versions,
    exit_status,
)
from handler.outcome.state import State


def result(state: State = State.SUCCESS, error: ErrorResult | None = None, **more: Any) -> Result:
    return Result(
        **{
            "run_id": "r",
            "client_token": "t",
            "attempt": 1,
            "previous_run_id": None,
            "name": None,
            "state": state,
            "state_details": "d",
            "exit_code": 0,
            "signal": None,
            "error": error,
            "writes": (),
            "timings": Timings(total_ms=1, remaining_ms=2),
            "cold_start": False,
            "memory": Memory(limit_mb=3008, peak_mb=None),
            "versions": Versions(soal=None, spark=None, delta=None, iceberg=None),
            "warnings": (),
            "log_tail": (),
            "result_uri": None,
            **more,
        }
    )


def error(*, retryable: bool = False, usage: bool = False) -> ErrorResult:
    return ErrorResult(type="E", message="m", field=None, retryable=retryable, usage=usage)


def test_the_published_schema_is_the_model_s() -> None:
    """If this fails: `python -m handler.outcome.result > handler/outcome/result.schema.json`, then read the diff."""
    published = Path(handler.outcome.result.__file__).with_name("result.schema.json").read_text(encoding="utf-8")
    assert published == schema_text(Result)


def test_the_document_has_the_designed_keys() -> None:
    """All keys exist on every path, and the document is valid under its schema."""
    document = result().document()
    assert list(document) == [
        "schemaVersion", "runId", "clientToken", "attempt", "previousRunId", "name", "entryPoint", "state",
        "stateDetails",
        "exitCode", "signal", "error", "writes", "timings", "coldStart", "warmStart", "memory", "versions", "warnings",
        "logTail", "resultUri", "resumeToken", "progressed", "continuedBy", "attempts",
    ]  # fmt: skip
    assert list(document["timings"]) == [
        "scriptDownloadMs", "jvmStartMs", "sessionMs", "jobMs", "settleMs", "totalMs", "remainingMs",
    ]  # fmt: skip
    Draft202012Validator(json.loads(schema_text(Result))).validate(document)


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (result(), 0),
        (result(State.FAILED, error()), 1),
        (result(State.FAILED, error(usage=True)), 2),
        (result(State.FAILED, error(retryable=True)), 75),
        (result(State.TIMED_OUT, error(retryable=True)), 124),
        (result(State.INCOMPLETE, error(retryable=True)), 124),
        (result(State.UNKNOWN, error()), 1),
        (result(State.CANCELLED), 1),
    ],
)
def test_the_exit_status_of_each_result(given: Result, status: int) -> None:
    """It guides a shell: only 0 is a success, 2 is a wrong call, 75 and 124 can be retried."""
    assert exit_status(given) == status
