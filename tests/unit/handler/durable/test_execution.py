"""Tests against the durable SDK's own emulation of the service, which calls the handler again and again."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from aws_durable_execution_sdk_python import DurableContext, durable_execution
from aws_durable_execution_sdk_python_testing.runner import DurableFunctionTestResult, DurableFunctionTestRunner

from handler.durable.attempts import Attempt
from handler.durable.execution import execution_id, run_attempts
from handler.outcome.delivery import deliver
from handler.outcome.result import Result
from tests.unit.handler.durable.results import result, write

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow


INCOMPLETE = [result("INCOMPLETE", f"{number}", write(f"{number}", f"{number}")) for number in range(2)]


class Killed(BaseException):
    """SIGKILL of the sandbox, which the function's code does not see."""


class Function:
    """A durable function whose attempts end as listed; an exception ends the sandbox."""

    def __init__(self, *ends: Result | Killed) -> None:
        self.ends = [*ends]
        self.attempted = self.invoked = 0
        self.after_attempt: Callable[[], None] = lambda: None

    def attempt(self) -> Result:
        self.attempted += 1
        end = self.ends[self.attempted - 1]
        if isinstance(end, Killed):
            raise end
        self.after_attempt()
        return end

    def run(self, _event: object, context: DurableContext) -> dict[str, Any]:
        return deliver(run_attempts(context, self.attempt, memory_mb=1769), None)

    def invoke(self, event: Any, context: Any) -> Any:
        self.invoked += 1
        try:
            return durable_execution(self.run)(event, context)
        except Killed:
            raise RuntimeError("the sandbox is gone") from None

    def execute(self) -> DurableFunctionTestResult:
        with DurableFunctionTestRunner(self.invoke, poll_interval=0.01) as runner:
            runner._executor.RETRY_BACKOFF_SECONDS = 0
            ended: DurableFunctionTestResult = runner.run(input="{}", execution_timeout=60)
        runner._scheduler._loop.close()  # the runner leaves it open
        return ended


def document(ended: DurableFunctionTestResult) -> Result:
    """Return the one answer of an execution."""
    if ended.error is not None:
        assert str(ended.error.type).endswith("JobFailed")
        return Result.model_validate_json(str(ended.error.message))
    return Result.model_validate(json.loads(str(ended.result)))


def test_attempts_follow_each_other_until_the_run_has_ended() -> None:
    """Each runs once, in its own invocation; the answer lists all."""
    function = Function(*INCOMPLETE, result("SUCCESS", "last"))
    found = document(function.execute())
    assert (found.state, [one.run_id for one in found.attempts]) == ("SUCCESS", ["0", "1", "last"])
    assert (function.attempted, function.invoked) == (3, 3)


def test_the_history_holds_the_documents_as_they_are() -> None:
    """`soal invoke`, the console and others read them; the SDK's own form is twice as long."""
    ended = Function(result("SUCCESS", "last")).execute()
    step = ended.get_step("attempt-1")
    assert Attempt.model_validate_json(str(step.result)).result.run_id == "last"


def test_an_attempt_that_was_killed_is_lost_and_another_one_follows() -> None:
    """The killed attempt itself is not started again."""
    function = Function(INCOMPLETE[0], Killed(), result("SUCCESS", "last"))
    found = document(function.execute())
    assert [one.error for one in found.attempts] == ["E", "AttemptLost", None]
    assert function.attempted == 3


def test_a_kill_between_an_attempts_end_and_its_checkpoint_costs_the_attempts_document_alone() -> None:
    """The table shows what it did, and the next attempt skips those writes."""
    function = Function(result("SUCCESS", "unseen"), result("SUCCESS", "last", write("unseen")))

    def killed_once() -> None:
        if function.attempted == 1:
            raise Killed

    function.after_attempt = killed_once
    found = document(function.execute())
    assert [(one.run_id, one.error) for one in found.attempts] == [(None, "AttemptLost"), ("last", None)]


def test_an_execution_without_progress_fails_with_its_document() -> None:
    """The execution fails after three consecutive attempts."""
    function = Function(*[result("TIMED_OUT", f"{number}") for number in range(3)])
    ended = function.execute()
    assert ended.status.value == "FAILED"
    assert [one.state for one in document(ended).attempts] == ["TIMED_OUT"] * 3
    assert function.attempted == 3


def test_a_usage_error_and_a_cancelled_run_end_at_once() -> None:
    """One attempt is made."""
    for last in (result("FAILED", "a", usage=True), result("CANCELLED", "a")):
        function = Function(last)
        assert (document(function.execute()).state, function.attempted) == (last.state, 1)


def test_a_replay_has_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each invocation replays all earlier steps, here with all side effects forbidden."""

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("a replay has an effect")

    function = Function(*INCOMPLETE, Killed(), result("SUCCESS", "last"))
    invoke = function.invoke

    def invoke_with_everything_forbidden(event: object, context: object) -> Any:
        with monkeypatch.context() as patch:
            for where, name in ((socket.socket, "connect"), (boto3, "client"), (boto3.Session, "client")):
                patch.setattr(where, name, forbidden)
            for name in ("builtins.open", "os.open", "os.mkdir", "os.fork", "subprocess.Popen", "shutil.rmtree"):
                patch.setattr(name, forbidden)
            return invoke(event, context)

    monkeypatch.setattr(function, "invoke", invoke_with_everything_forbidden)
    assert document(function.execute()).state == "SUCCESS"
    assert function.attempted == len(function.ends)


def test_a_handler_that_fails_behind_its_job_says_so() -> None:
    """It was not killed; the next attempt finds the job's writes."""
    function = Function(result("SUCCESS", "unseen"), result("SUCCESS", "last"))

    def fail() -> None:
        if function.attempted == 1:
            raise OSError("no room for a metric")

    function.after_attempt = fail
    assert [one.error for one in document(function.execute()).attempts] == ["OSError", None]


def test_the_id_of_an_execution_is_the_key_of_its_run() -> None:
    """It differs between executions, and has at most 64 characters."""
    arn = "arn:aws:lambda:eu-west-1:123456789012:function:soal:7/durable-execution/nightly/3f2c"
    assert execution_id(arn) == "3f2c"
    long = [execution_id(f"{'x' * 100}{number}") for number in range(2)]
    assert len({*long}) == 2
    assert {len(one) for one in (*long, execution_id("a/"))} == {64}
