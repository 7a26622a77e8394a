"""The handler returns a result, or raises it as the function's error."""

from __future__ import annotations

import json

import pytest

from handler.outcome.delivery import JobFailed, deliver
from handler.outcome.state import State
from handler.settings import read_settings
from tests.unit.handler.outcome.test_result import error, result


def test_success_is_returned() -> None:
    """Lambda passes it to the caller as the function's payload, while a failure is raised."""
    assert deliver(result(), None)["state"] == "SUCCESS"


def test_anything_else_is_raised_with_the_document() -> None:
    """This makes Lambda count, retry and route it."""
    failed = result(State.FAILED, error())
    with pytest.raises(JobFailed) as caught:
        deliver(failed, None)
    assert json.loads(str(caught.value)) == failed.document()


def test_a_setting_returns_it_instead() -> None:
    """This is for callers that read the state themselves."""
    settings = read_settings({"SW_CHECKPOINT_BUCKET": "checkpoints", "SOAL_ERRORS": "return"})
    assert deliver(result(State.UNKNOWN, error()), settings)["state"] == "UNKNOWN"
