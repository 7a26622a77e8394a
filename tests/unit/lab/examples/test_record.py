"""The lab's record of one of Spark's examples counts it as open if it neither ran nor named a reason."""

from __future__ import annotations

import pytest

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
