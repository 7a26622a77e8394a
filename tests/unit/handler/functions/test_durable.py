"""The durable function's own part: attempts on the thread that Lambda calls, and one answer."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from aws_durable_execution_sdk_python.exceptions import GetExecutionStateError
from aws_durable_execution_sdk_python.lambda_service import LambdaClient
from aws_durable_execution_sdk_python_testing.runner import DurableFunctionTestResult, DurableFunctionTestRunner

from handler.functions import durable
from handler.outcome.result import Result
from tests.support.page import page
from tests.unit.handler.durable.results import result, write

if TYPE_CHECKING:
    from collections.abc import Mapping

INCOMPLETE = result("INCOMPLETE", "first", write("first"))


class Context:
    """The attributes that the runner's context lacks."""

    memory_limit_in_mb = 1769

    def __init__(self, given: Any) -> None:
        self._given = given

    def __getattr__(self, name: str) -> Any:
        return getattr(self._given, name)


class Function:
    """The function, with attempts that end as listed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *ends: Result) -> None:
        self.ends = iter(ends)
        self.environments: list[dict[str, str]] = []
        self.executions: set[tuple[str, str]] = set()
        self.threads: list[bool] = []
        self._called_by = threading.current_thread()
        monkeypatch.setattr(durable, "attempt", self.attempt)

    def attempt(
        self, _event: object, _context: object, environment: Mapping[str, str], *, request_id: str, execution: str
    ) -> Result:
        self.environments.append(dict(environment))
        self.executions.add((request_id, execution))
        self.threads.append(threading.current_thread() is self._called_by)
        return next(self.ends)

    def invoke(self, event: Any, context: Any) -> Any:
        self._called_by = threading.current_thread()
        return durable.lambda_handler(event, Context(context))  # type: ignore[arg-type]

    def execute(self) -> DurableFunctionTestResult:
        with DurableFunctionTestRunner(self.invoke, poll_interval=0.01) as runner:
            ended: DurableFunctionTestResult = runner.run(input="{}", execution_timeout=60)
        runner._scheduler._loop.close()  # the runner leaves it open
        return ended


def test_attempts_run_on_the_thread_that_lambda_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM dies with the thread that started it, and must survive for the next attempt."""
    function = Function(monkeypatch, INCOMPLETE, result("SUCCESS", "last"))
    assert function.execute().status.value == "SUCCEEDED"
    assert function.threads == [True, True]


def test_attempts_do_not_continue_themselves_and_are_of_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds whatever the owner sets: the service starts the next attempt."""
    monkeypatch.setenv("SOAL_CONTINUE_MAX", "7")
    function = Function(monkeypatch, INCOMPLETE, result("SUCCESS", "last"))
    function.execute()
    assert {one["SOAL_CONTINUE_MAX"] for one in function.environments} == {"0"}
    ((key, arn),) = function.executions
    assert arn.endswith(key)


@pytest.mark.parametrize(
    ("last", "errors", "status"),
    [
        (result("FAILED", "a", usage=True), "raise", "FAILED"),
        (result("FAILED", "a", usage=True), "return", "SUCCEEDED"),
        (result("CANCELLED", "a"), "raise", "SUCCEEDED"),
    ],
    ids=["failed", "returned", "cancelled"],
)
def test_what_has_failed_fails_the_execution(
    monkeypatch: pytest.MonkeyPatch, last: Result, errors: str, status: str
) -> None:
    """The error's message is the document. A cancelled run has not failed: it causes neither alarm nor redrive."""
    monkeypatch.setenv("SW_CHECKPOINT_BUCKET", "checkpoints")
    monkeypatch.setenv("SOAL_ERRORS", errors)
    ended = Function(monkeypatch, last).execute()
    assert ended.status.value == status
    text = str(ended.error.message) if ended.error is not None else json.dumps(json.loads(str(ended.result)))
    assert Result.model_validate_json(text).state == last.state


def test_a_page_is_no_answer_of_the_durable_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a checkpoint that a proxy has answered would pass for a stored one."""
    arn = "arn:aws:lambda:us-east-1:123456789012:function:f:1/durable-execution/a/b"
    state = {"Operations": [], "NextMarker": "m"}
    event = {"DurableExecutionArn": arn, "CheckpointToken": "t", "InitialExecutionState": state}
    with page() as endpoint:
        monkeypatch.setattr(LambdaClient, "_cached_boto_client", None)
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        with pytest.raises(GetExecutionStateError, match="not from Lambda"):
            Function(monkeypatch).invoke(event, object())
