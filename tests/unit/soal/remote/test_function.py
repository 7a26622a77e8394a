"""Tests against the real emulator, which has Lambda's API."""

from __future__ import annotations

import json
import socket
import threading
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from handler.outcome.result import ErrorResult
from handler.outcome.state import State
from scripts.emulator.rie import LambdaEmulator
from soal.console.problem import EXIT_DEADLINE, EXIT_FAILED, EXIT_TRY_AGAIN, Problem
from soal.remote.function import RemoteFunction
from tests.support.command_line import app
from tests.support.lambda_api import lambda_api
from tests.support.page import page
from tests.unit.handler.outcome.test_result import result

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.emulator

HANDLER = """
import json, time

class JobFailed(Exception):
    pass

def handle(event, context):
    do, answer = event["entryPointArguments"]
    if do == "fail":
        raise JobFailed(answer)
    if do == "sleep":
        time.sleep(60)
    return json.loads(answer)
"""


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("remote")
    (directory / "function.py").write_text(HANDLER, encoding="utf-8")
    with (
        LambdaEmulator({}, timeout_s=3, memory_mb=512, handler="function.handle", directory=directory) as running,
        lambda_api(running.endpoint) as served,
    ):
        yield served


def event(do: str, answer: object = None) -> dict[str, object]:
    return {
        "entryPoint": "s3://b/job.py",
        "clientToken": "token",
        "entryPointArguments": [do, json.dumps(answer)],
    }


def failed() -> dict[str, object]:
    error = ErrorResult(type="Boom", message="no", field=None, retryable=False, usage=False)
    return result(State.FAILED, error).document()


def test_an_answer_is_a_result(endpoint: str) -> None:
    """An answer gives the same result as `soal local invoke`, with the exit code of its state."""
    found = RemoteFunction("function", endpoint).invoke(event("answer", result().document()))
    assert found.result == result()
    assert found.exit_code == 0


def test_a_function_error_is_a_result_too(endpoint: str) -> None:
    """The document that a failed job raises is the result."""
    found = RemoteFunction("function", endpoint).invoke(event("fail", failed()))
    assert found.result is not None
    assert (found.result.state, found.exit_code) == (State.FAILED, EXIT_FAILED)


@pytest.mark.slow
def test_a_function_that_was_killed_says_what_to_do(endpoint: str) -> None:
    """A killed function gives a remedy, although its timeout is unknown here."""
    found = RemoteFunction("function", endpoint).invoke(event("sleep"))
    assert found.exit_code == EXIT_DEADLINE
    assert "killed at its timeout before" in str(found.problem)


def test_a_request_that_has_not_left_this_machine_started_nothing() -> None:
    """Nobody listens there, so the problem says what to check, and the same call may be tried again."""
    with pytest.raises(Problem, match="function f: ") as raised:
        RemoteFunction("f", "http://127.0.0.1:9").invoke({})
    assert "check the network" in raised.value.todo
    assert raised.value.exit_code == EXIT_TRY_AGAIN


def test_a_request_without_an_answer_leaves_the_question_open() -> None:
    """The connection ends behind the request: the problem says that the job may run all the same."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            connection, _ = server.accept()
            connection.recv(65_536)
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(Problem, match="function f: ") as raised:
            RemoteFunction("f", f"http://127.0.0.1:{server.getsockname()[1]}").invoke({})
        thread.join()
    assert "may run all the same" in raised.value.todo


def test_an_event_is_queued_under_a_token_by_which_its_run_is_found(endpoint: str) -> None:
    """An event without a token gets one, by which its run is found."""
    document = json.dumps({"entryPoint": "s3://b/job.py", "entryPointArguments": ["answer", "{}"]})
    done = CliRunner().invoke(
        app, ["invoke", document, "--function", "function", "--endpoint-url", endpoint, "--async", "--json"]
    )
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert len(answer["runKey"]) == 32
    assert set(answer) == {"requestId", "runKey"}
    assert len(answer["requestId"]) == 36


@pytest.mark.parametrize("option", ["--json", "--async"])
def test_a_page_of_a_proxy_is_no_answer_of_lambda(option: str) -> None:
    """Nothing says that the event is queued, nor that it is not."""
    with page() as proxy:
        done = CliRunner().invoke(
            app, ["invoke", json.dumps(event("answer")), "-f", "f", "--endpoint-url", proxy, option]
        )
    assert isinstance(done.exception, Problem)
    assert "not from Lambda" in str(done.exception)
    assert "may run all the same" in done.exception.todo


def test_the_command_prints_the_result_and_exits_by_its_state(endpoint: str, tmp_path: Path) -> None:
    """With `--json` the command prints only the document, and exits by its state."""
    given = tmp_path / "event.json"
    given.write_text(json.dumps(event("fail", failed())), encoding="utf-8")
    call = ["invoke", str(given), "-f", "function", "--endpoint-url", endpoint, "--json"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == EXIT_FAILED
    assert json.loads(done.stdout) == failed()


def test_waiting_and_not_waiting_exclude_each_other() -> None:
    """--async and --until-done together are refused before anything is sent."""
    done = CliRunner().invoke(app, ["invoke", "s3://b/x.py", "-f", "f", "--async", "--until-done"])
    assert isinstance(done.exception, Problem)
