"""Tests against the emulated durable service, with a test function under the real emulator."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from botocore.config import Config
from typer.testing import CliRunner

from safewriter.objects.client import client_of
from scripts.emulator.durable import DurableEmulator
from soal.console.problem import EXIT_DEADLINE, EXIT_FAILED, EXIT_TRY_AGAIN, Problem
from soal.remote.execution import Execution
from soal.remote.function import RemoteFunction
from tests.support.command_line import app
from tests.support.page import page
from tests.unit.handler.outcome.test_result import result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typer.testing import Result as Ended

pytestmark = [pytest.mark.emulator, pytest.mark.slow]

HANDLER = """
import json
from aws_durable_execution_sdk_python import durable_execution
from aws_durable_execution_sdk_python.config import Duration, StepConfig
from aws_durable_execution_sdk_python.serdes import JsonSerDes

PLAIN = StepConfig(serdes=JsonSerDes())

class JobFailed(Exception):
    pass

@durable_execution
def handle(event, context):
    do, answer = event["entryPointArguments"]
    document = json.loads(answer)
    attempt = {"result": {**document, "state": "INCOMPLETE"}, "committed": 7}
    context.step(lambda _: attempt, name="attempt-1", config=PLAIN)
    context.wait(Duration.from_seconds(2 if do != "wait" else 600), name="pause-1")
    context.step(lambda _: document, name="attempt-2", config=PLAIN)
    if do == "fail":
        raise JobFailed(json.dumps(document))
    return document
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DurableEmulator]:
    directory = tmp_path_factory.mktemp("durable")
    (directory / "function.py").write_text(HANDLER, encoding="utf-8")
    with DurableEmulator({}, timeout_s=20, handler="function.handle", directory=directory) as running:
        yield running


def event(do: str) -> str:
    arguments = [do, json.dumps(result().document())]
    return json.dumps({"entryPoint": "s3://b/job.py", "clientToken": "t", "entryPointArguments": arguments})


def invoke(service: DurableEmulator, do: str) -> Ended:
    command = ["invoke", event(do), "--function", "function", "--endpoint-url", service.endpoint, "--json"]
    return CliRunner().invoke(app, command)


def test_a_durable_function_is_waited_for_until_its_execution_has_ended(service: DurableEmulator) -> None:
    """The command waits for the end of an execution; its answer is the result."""
    ended = invoke(service, "succeed")
    assert (ended.exit_code, json.loads(ended.stdout)["state"]) == (0, "SUCCESS"), ended.output
    assert "started the execution" in ended.stderr


def test_an_execution_that_failed_ends_with_its_document(service: DurableEmulator) -> None:
    """A failed execution ends with its document, although the SDK gives the exception's full name."""
    execution = RemoteFunction("function", service.endpoint).start(json.loads(event("fail")))
    report = execution.report(lambda _: None)
    assert report.result == result()


def test_the_attempts_are_told_while_it_runs(service: DurableEmulator) -> None:
    """The newest attempt is shown while it runs, with the end of the one before."""
    told: list[str] = []
    Execution(service.start(event("succeed")), service.client(), poll_s=0.1).report(told.append)
    assert "attempt 1 has ended; it ended as INCOMPLETE with 7 commits" in told


def test_an_execution_that_was_stopped_says_so(service: DurableEmulator) -> None:
    """A stopped execution, which has no document, is a problem that says so."""
    client = service.client()
    execution = Execution(service.start(event("wait")), client)
    client.stop_durable_execution(DurableExecutionArn=execution.arn)
    report = execution.report(lambda _: None)
    assert (report.exit_code, report.problem) == (
        EXIT_DEADLINE,
        "the execution was stopped; its committed steps stay",
    )


def test_who_stops_waiting_hears_how_to_look_again(service: DurableEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """After Ctrl-C the execution goes on, and the problem says how to look again."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("soal.remote.execution.time.sleep", interrupted)
    ended = invoke(service, "wait")
    assert isinstance(ended.exception, Problem)
    assert ended.exception.exit_code == EXIT_TRY_AGAIN
    assert "soal runs show t" in str(ended.exception.todo)
    arn = ended.stderr.partition("started the execution ")[2].split()[0]
    client = service.client()
    assert client.get_durable_execution(DurableExecutionArn=arn)["Status"] == "RUNNING"
    client.stop_durable_execution(DurableExecutionArn=arn)


def test_a_page_of_a_proxy_is_no_end_of_an_execution() -> None:
    """Nothing but pages ends the waiting: the problem says what to check, and that the execution goes on."""
    with page() as proxy:
        client = client_of("lambda", Config(retries={"total_max_attempts": 1}), endpoint=proxy)
        with pytest.raises(Problem, match=r"goes on.*not from Lambda") as caught:
            Execution("arn", client, poll_s=0).report(lambda _: None)
    assert caught.value.exit_code == EXIT_TRY_AGAIN
    assert "a proxy" in str(caught.value.todo)


def test_an_execution_that_nobody_knows_is_a_problem_with_what_to_allow(service: DurableEmulator) -> None:
    """An unknown execution, or a forbidden one, is a problem that names the needed permissions."""
    with pytest.raises(Problem) as caught:
        Execution("none", service.client()).report(lambda _: None)
    assert caught.value.exit_code == EXIT_FAILED
    assert "lambda:GetDurableExecution" in str(caught.value.todo)
