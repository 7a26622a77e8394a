"""A handler under Lambda's runtime interface emulator: environment, errors, logs, timeouts, and no process left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import psutil
import pytest

from scripts.emulator.rie import EmulatorError, LambdaEmulator
from scripts.provision.place import ROOT
from tests.support.processes import has_ended
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.emulator, pytest.mark.slow]

HANDLER = """
import json, os, subprocess, sys, time

class JobFailed(Exception):
    pass

def handle(event, context):
    what = event["do"]
    if what == "raise":
        raise JobFailed(json.dumps({"state": "FAILED", "é": 1}))
    if what == "sleep":
        subprocess.Popen(["sleep", "300"], start_new_session=True)
        time.sleep(300)
    if what == "detach":
        return subprocess.Popen(["sleep", "300"], start_new_session=True).pid
    if what == "exit":
        os._exit(3)
    if what == "print":
        print("a line of the handler")
    return {"environment": dict(os.environ), "memory": context.memory_limit_in_mb, "stamp": time.monotonic()}
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("function")
    (path / "function.py").write_text(HANDLER, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return []


@pytest.fixture(scope="module")
def function(directory: Path, lines: list[str]) -> Iterator[LambdaEmulator]:
    with LambdaEmulator(
        {"GIVEN": "1"},
        timeout_s=30,
        memory_mb=512,
        handler="function.handle",
        directory=directory,
        on_line=lines.append,
    ) as running:
        yield running


def all_end(processes: Iterable[psutil.Process]) -> bool:
    """Return whether the processes end within 20 seconds."""
    return until(lambda: all(has_ended(one) for one in processes), timeout_s=20)


def test_the_function_sees_its_own_environment_only(function: LambdaEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The function sees the given variables and Lambda's, and none of this process."""
    answer = function.invoke({"do": "answer"})
    assert answer.error is None
    assert not answer.timed_out
    environment = answer.payload["environment"]
    assert environment["GIVEN"] == "1"
    assert environment["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] == "512"
    assert answer.payload["memory"] == "512"
    assert "AWS_ENDPOINT_URL" not in environment
    assert "HOME" not in environment


def test_a_handler_that_raises_is_a_function_error(function: LambdaEmulator) -> None:
    """Class and message of the exception arrive, although the emulator answers 200."""
    answer = function.invoke({"do": "raise"})
    assert answer.error is not None
    assert answer.error.type == "JobFailed"
    assert answer.error.message == '{"state": "FAILED", "\\u00e9": 1}'


def test_a_runtime_that_exits_is_a_function_error_and_the_next_event_is_answered(function: LambdaEmulator) -> None:
    """The emulator starts the runtime again by itself."""
    answer = function.invoke({"do": "exit"})
    assert answer.error is not None
    assert answer.error.type == "Runtime.ExitError"
    assert function.invoke({"do": "answer"}).error is None


def test_the_log_arrives_line_by_line(function: LambdaEmulator, lines: list[str]) -> None:
    """Each line that the handler prints goes to `on_line` and into the tail."""
    function.invoke({"do": "print"})
    until(lambda: "a line of the handler" in lines, timeout_s=10)
    assert "a line of the handler" in lines
    assert "a line of the handler" in function.tail()


def test_invocations_wait_for_their_turn(function: LambdaEmulator) -> None:
    """Two concurrent callers, which would crash the emulator, are both answered."""
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(function.invoke, [{"do": "answer"}] * 8))
    assert all(answer.error is None for answer in answers)
    assert len({answer.payload["stamp"] for answer in answers}) == 8


def test_a_timeout_is_told_and_the_end_kills_what_left_the_session(directory: Path) -> None:
    """The emulator's text becomes `timed_out`; a detached child survives the timeout, but not the end of the block."""
    with LambdaEmulator({}, timeout_s=1, handler="function.handle", directory=directory) as running:
        answer = running.invoke({"do": "sleep"})
        assert answer.timed_out
        (detached,) = [process for process in running.processes() if process.name() == "sleep"]
    assert all_end([detached])


def test_the_end_leaves_no_process(directory: Path) -> None:
    """Emulator, runtime and a detached child have ended when the block has."""
    with LambdaEmulator({}, handler="function.handle", directory=directory) as running:
        detached = running.invoke({"do": "detach"}).payload
        processes = running.processes()
        assert detached in [process.pid for process in processes]
    assert all_end(processes)


def test_nothing_outlives_a_killed_parent(directory: Path) -> None:
    """SIGKILL of the process with the emulator ends all descendants, detached or not."""
    code = f"""
        from pathlib import Path
        from scripts.emulator.rie import LambdaEmulator
        with LambdaEmulator({{}}, handler="function.handle", directory=Path({str(directory)!r})) as running:
            detached = running.invoke({{"do": "detach"}}).payload
            print(*[process.pid for process in running.processes()], flush=True)
            input()
    """
    holder = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    processes = [psutil.Process(int(word)) for word in holder.stdout.readline().split()]
    assert len(processes) >= 3
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait(20)
    holder.stdin.close()
    holder.stdout.close()
    assert all_end(processes)


def test_a_missing_emulator_says_what_to_do(tmp_path: Path) -> None:
    """If the binary is missing, the error names the command that fetches it."""
    with pytest.raises(EmulatorError, match="scripts/setup"), LambdaEmulator({}, binary=tmp_path / "rie"):
        pass


def test_an_emulator_that_ends_at_once_is_an_error(tmp_path: Path) -> None:
    """A binary that ends without listening is an error with its output."""
    binary = tmp_path / "rie"
    binary.write_text("#!/bin/sh\necho broken\n", encoding="utf-8")
    binary.chmod(0o755)
    with pytest.raises(EmulatorError, match="broken"), LambdaEmulator({}, binary=binary):
        pass
