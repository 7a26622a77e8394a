from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.emulator.spark import ROOT
from tests.lab.examples.record import ExampleRecord


def record(**values: object) -> ExampleRecord:
    line = {"example": "pi.py", "variant": "full", "needs": None, "state": "SUCCESS", "is_usage": False, "says": None}
    return ExampleRecord.model_validate({**line, **values})


@pytest.mark.parametrize(
    ("values", "is_open"),
    [
        ({}, False),
        ({"state": "TIMED_OUT"}, False),
        ({"state": "FAILED"}, True),
        ({"state": "FAILED", "is_usage": True}, False),
        ({"state": "FAILED", "needs": "a server"}, False),
        ({"state": None, "needs": "a server"}, False),
        ({"state": "UNKNOWN"}, True),
    ],
)
def test_an_example_is_open_that_neither_ran_nor_says_what_is_missing(
    values: dict[str, object], *, is_open: bool
) -> None:
    """A sentence is an answer, a stack trace is none."""
    assert record(**values).is_open is is_open


def test_the_kept_schema_is_that_of_a_line() -> None:
    """`python -m tests.lab.examples.record` writes it."""
    kept = Path(ROOT, "tests", "lab", "examples", "record.schema.json")
    assert json.loads(kept.read_text()) == ExampleRecord.model_json_schema()
