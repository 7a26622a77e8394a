"""The handler cuts a result that is too large for Lambda, and keeps the writes that are not committed."""

from __future__ import annotations

import json
import traceback
from types import SimpleNamespace
from typing import Any, cast

import pytest

from handler.app import lambda_handler
from handler.outcome.cut import answerable
from handler.outcome.delivery import JobFailed, deliver
from handler.outcome.result import ErrorResult, WriteResult
from handler.outcome.state import State
from tests.unit.handler.outcome.test_result import result

pytestmark = pytest.mark.slow


def write(number: int, status: str = "committed", text: str = "x") -> WriteResult:
    return WriteResult(
        table=f"s3a://lake/{number}",
        format="delta",
        step=text,
        status=status,
        version=1,
        rows=1,
        bytes=1,
        reason=text,
        undo_refused=text,
        incomplete=text,
        checkpoint="s3://checkpoints/" + "a" * 64,
    )


@pytest.mark.parametrize("text", ["x" * 10, "\u65e5\U0001f600" * 5000, '"' * 5000], ids=["short", "letters", "quotes"])
def test_an_answer_has_a_bound_whatever_a_job_has_written(text: str) -> None:
    """Lambda, its queues and Step Functions accept it; it has the uncommitted writes, and the number of the others."""
    given = result(
        State.FAILED,
        ErrorResult(type=text, message=text * 100, field=None, retryable=False, usage=False),
        state_details=text * 1000,
        writes=tuple(write(number, "rolled_back" if number == 2999 else "committed", text) for number in range(3000)),
        warnings=(text,) * 3000,
        log_tail=(text,) * 200,
    )
    shown = answerable(given)
    assert len(json.dumps(json.dumps(json.dumps(shown.document(), ensure_ascii=False)))) <= 240_000
    assert shown.writes[-1].status == "rolled_back"
    left_out = 3000 - len(shown.writes)
    assert shown.warnings[-1] == f"{left_out} writes are left out here; the document at resultUri has all"


@pytest.mark.parametrize(
    "text", ["x" * 10, "\U0001f600" * 5000, '"' * 5000, "\0" * 5000], ids=["short", "letters", "quotes", "control"]
)
def test_an_error_fits_into_the_cause_of_a_failed_task(text: str) -> None:
    """Step Functions keeps 32,768 characters of the runtime's document; a state machine reads the result in it. Name
    and path of the script are not cut, and have the length that an event may give them.
    """
    given = result(
        State.FAILED,
        ErrorResult(type=text, message=text * 100, field=text, retryable=False, usage=False),
        state_details=text * 1000,
        name="\U0001f600" * 256,
        entry_point="s3://b/" + "\U0001f600" * 1093,
        writes=tuple(write(number, "rolled_back" if number == 2999 else "committed", text) for number in range(3000)),
        warnings=(text,) * 3000,
        log_tail=(text,) * 200,
    )
    with pytest.raises(JobFailed) as raised:
        deliver(given, None)
    trace = traceback.format_tb(raised.tb)
    cause = {"errorMessage": str(raised.value), "errorType": "JobFailed", "requestId": "r" * 36, "stackTrace": trace}
    assert len(json.dumps(cause)) <= 32_768
    shown = json.loads(str(raised.value))
    assert (shown["state"], shown["writes"][-1]["status"]) == ("FAILED", "rolled_back")
    assert shown["logTail"]


def test_the_function_s_answer_has_that_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A returned document is cut."""
    given = result(writes=tuple(map(write, range(3000))))
    monkeypatch.setattr("handler.app._attempt", lambda *_: (given, None))
    shown = lambda_handler({}, cast("Any", SimpleNamespace(aws_request_id="r")))
    assert 0 < len(shown["writes"]) < 3000


def test_an_answer_that_fits_stays_as_it_is() -> None:
    """Nothing is dropped."""
    given = result(writes=tuple(map(write, range(300))), state_details="d" * 10_000)
    assert answerable(given) is given
