"""The command line takes an answer of Lambda for a timeout only if it is the service's own message."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from handler.outcome.delivery import JobFailed, deliver
from handler.outcome.result import ErrorResult
from handler.outcome.state import State
from soal.invocation.report import report_of, until_done
from soal.remote.answer import answer_of
from tests.unit.handler.outcome.test_result import result

if TYPE_CHECKING:
    from soal.invocation.report import Report

REQUEST = "7c1b2a30-0000-4000-8000-0123456789ab"
WORDS = "Task timed out after 900.00 seconds"


def raised(kind: str | None, message: str) -> str:
    return json.dumps({**({} if kind is None else {"errorType": kind}), "errorMessage": message})


@pytest.mark.parametrize(
    "text",
    [
        WORDS,
        f"{WORDS}\n",
        raised(None, f"2026-11-26T04:00:00.000Z {REQUEST} {WORDS}"),
        raised("Sandbox.Timedout", f"RequestId: {REQUEST} Error: {WORDS}"),
    ],
    ids=["the emulator's", "with a line end", "the service's", "the service's, with a class"],
)
def test_a_timeout_is_the_service_s_own_message(text: str) -> None:
    """A timeout is Lambda's whole message, with no error class except Lambda's own."""
    assert answer_of(text, 1).timed_out


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(WORDS),
        raised("RuntimeError", WORDS),
        raised("JobFailed", WORDS),
        raised("Sandbox.Timedout", f"bad row: {WORDS}"),
        raised(None, f"bad row: {WORDS}"),
        raised(None, f"{WORDS} or so"),
        f"bad row: {WORDS}",
        json.dumps({"log_tail": [WORDS]}),
    ],
)
def test_the_same_words_in_another_place_are_no_timeout(text: str) -> None:
    """The same words elsewhere are no timeout: a job's data may contain them."""
    assert not answer_of(text, 1).timed_out


def test_a_job_that_prints_them_has_failed_and_is_not_repeated() -> None:
    """A job that prints these words has failed, and is not invoked again."""
    error = ErrorResult(type="Boom", message=WORDS, field=None, retryable=False, usage=False)
    failed = result(State.FAILED, error).model_copy(update={"log_tail": (f"bad row: {WORDS}", WORDS)})
    asked: list[object] = []

    def invoke(event: object) -> Report:
        asked.append(event)
        try:
            return report_of(answer_of(json.dumps(deliver(failed, None)), 1), None)
        except JobFailed as raising:
            return report_of(answer_of(raised("JobFailed", str(raising)), 1), None)

    report = until_done(invoke, {"clientToken": "t"}, attempts_max=10, remark=lambda _: None)
    assert (len(asked), report.exit_code) == (1, 1)
    assert report.result is not None
