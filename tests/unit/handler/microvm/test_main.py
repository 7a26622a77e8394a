"""The process of a MicroVM, without a JVM: its arguments, its hooks, its end."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from handler.microvm import __main__ as program
from handler.microvm.lifecycle import Lifecycle
from handler.microvm.warm_up import WarmUp
from scripts.emulator.microvm import MicrovmEmulator
from scripts.emulator.rie import EmulatorError
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from handler.microvm.job import Jobs

ROOT = Path(__file__).parents[4]


@pytest.fixture
def lives(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Jobs]]:
    """Let no life begin; return what each would have done. The variables are as before afterwards."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    found: list[Any] = []

    class Idle(Lifecycle):
        def __init__(self, work: Jobs) -> None:
            super().__init__(work)
            found.append(work)

        def serve(self) -> None:
            signal.raise_signal(signal.SIGTERM)
            assert self._calls.get(timeout=BUSY_S) is None

    monkeypatch.setattr(program, "Lifecycle", Idle)
    before = signal.getsignal(signal.SIGTERM)
    yield found
    signal.signal(signal.SIGTERM, before)


def test_its_arguments_are_the_warm_up_s(lives: list[Jobs], monkeypatch: pytest.MonkeyPatch) -> None:
    """The image gives none: sixteen jobs with lessons, by its own Python, with the memory of the default size."""
    monkeypatch.delenv("SOAL_MEMORY_MB", raising=False)
    monkeypatch.setenv("SOAL_HOME", str(ROOT))
    program.main(["--port", "0"])
    monkeypatch.setenv("SOAL_MEMORY_MB", "4096")
    program.main(["--port", "0", "--rounds", "2", "--no-lessons", "--s3-python", "/other/python"])
    assert [(jobs.memory_mb, jobs.warm_ups) for jobs in lives] == [
        (2048, WarmUp(ROOT, 16, lessons=True, python=sys.executable)),
        (4096, WarmUp(ROOT, 2, lessons=False, python="/other/python")),
    ]


def test_the_variables_are_those_of_its_start(lives: list[Jobs], monkeypatch: pytest.MonkeyPatch) -> None:
    """The warm-up changes this process's own for a while."""
    monkeypatch.setenv("SW_CHECKPOINT_BUCKET", "checkpoints")
    program.main(["--port", "0"])
    monkeypatch.setenv("SW_CHECKPOINT_BUCKET", "other")
    assert lives[0].environment["SW_CHECKPOINT_BUCKET"] == "checkpoints"


def test_boto3_has_the_region_that_lambda_names(lives: list[Jobs], monkeypatch: pytest.MonkeyPatch) -> None:
    """A MicroVM has AWS_REGION alone, as people have seen, and boto3 reads the other: a function has both."""
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    program.main(["--port", "0"])
    assert boto3.client("lambda-microvms").meta.region_name == "eu-west-1"
    assert lives[0].environment["AWS_DEFAULT_REGION"] == "eu-west-1"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    program.main(["--port", "0"])
    assert lives[1].environment["AWS_DEFAULT_REGION"] == "eu-central-1"


@pytest.mark.parametrize("text", ["4GB", "0", "-1"])
@pytest.mark.usefixtures("lives")
def test_a_wrong_number_is_named(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The build's log has it: the process ends, and the hook `ready` has no answer."""
    monkeypatch.setenv("SOAL_MEMORY_MB", text)
    with pytest.raises(SystemExit):
        program.main(["--port", "0"])
    assert f"SOAL_MEMORY_MB: '{text}' is not a number of megabytes" in capsys.readouterr().err


@pytest.mark.slow
def test_its_hooks_answer_as_its_life_goes() -> None:
    """The program itself, with a warm-up of no job: ready and valid, it takes no event without a MicroVM's id."""
    variables = {"SW_CHECKPOINT_BUCKET": "checkpoints"}
    with MicrovmEmulator(variables, words=("--rounds", "0"), python=Path(sys.executable)) as machine:
        machine.until_ok("ready", BUSY_S)
        assert machine.call("run", {"runHookPayload": "{}"})[0] == 400
        assert machine.call("suspend")[0] == machine.call("resume")[0] == machine.call("terminate")[0] == 200


@pytest.mark.slow
def test_a_warm_up_that_fails_ends_the_build() -> None:
    """The hook `ready` says why, and the process stays for its log."""
    with (
        MicrovmEmulator({}, words=("--rounds", "0"), python=Path(sys.executable)) as machine,
        pytest.raises(EmulatorError, match=r"(?s)the hook ready answered 500: .*SW_CHECKPOINT_BUCKET"),
    ):
        machine.build(within_s=BUSY_S)
