"""The function's initialisation starts Java before the first event where that helps, and never prevents the event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from handler.app import initialise, refuse_several_events
from handler.input_errors import InputError
from handler.services import Services
from handler.spark.command import compose_machine
from handler.spark.machine import Machine
from tests.unit.handler.world import REFERENCES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from handler.sandbox.sandbox import Sandbox
    from handler.spark.command import Command


class Begun:
    """Stands for the reuse of JVMs and records its calls."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.fails = fails
        self.commands: list[Any] = []
        self.ready_within_s: float | None = None

    def begin(
        self, _base: Path, command_for: Any, *, ready_within_s: float | None, may_clean: Callable[[], bool]
    ) -> None:
        if self.fails is not None:
            raise self.fails
        self.may_clean = may_clean
        self.ready_within_s = ready_within_s
        self.commands.append(command_for)


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    own = {"SW_CHECKPOINT_BUCKET": "checkpoints", "TMPDIR": str(tmp_path), "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "3008"}
    return {**own, **more}


@pytest.mark.parametrize(
    ("why", "at_once", "waits"),
    [
        ("provisioned-concurrency", "", True),
        ("lambda-managed-instances", "1", True),
        ("on-demand", "", False),
        ("", "", False),
    ],
)
def test_java_is_waited_for_where_no_event_waits(tmp_path: Path, why: str, at_once: str, waits: bool) -> None:  # noqa: FBT001 - pytest gives it
    """With provisioned concurrency and on Managed Instances; elsewhere an event's first steps run beside its start."""
    reuse = Begun()
    variables = environment(tmp_path, AWS_LAMBDA_INITIALIZATION_TYPE=why, AWS_LAMBDA_MAX_CONCURRENCY=at_once)
    initialise(variables, Services(reuse=reuse))  # type: ignore[arg-type]
    assert len(reuse.commands) == 1
    assert (reuse.ready_within_s is not None) == waits


def begun(variables: dict[str, str], fails: Exception | None = None) -> list[Any]:
    reuse = Begun(fails)
    initialise(variables, Services(reuse=reuse))  # type: ignore[arg-type]
    return reuse.commands


def test_java_starts_before_the_first_event(tmp_path: Path, sandbox: Sandbox) -> None:
    """It starts for jobs without settings of their own, with the function's settings."""
    (command_for,) = begun(environment(tmp_path, SOAL_CONF='{"spark.driver.memory": "1g"}'))
    command: Command = command_for(sandbox)
    assert "-Xmx1024m" in command.argv
    assert command.submission == ()
    assert not sandbox.submission_file.exists()


@pytest.mark.parametrize(("timeout_s", "quick"), [("60", True), ("61", False), ("", False)])
def test_java_compiles_as_the_functions_jobs_need_it(
    tmp_path: Path,
    sandbox: Sandbox,
    timeout_s: str,
    quick: bool,  # noqa: FBT001 - pytest gives it
) -> None:
    """The stack passes the timeout, which Lambda gives only with an event; without it, Lambda's longest applies."""
    (command_for,) = begun(environment(tmp_path, SOAL_TIMEOUT_S=timeout_s))
    command: Command = command_for(sandbox)
    assert ("-XX:TieredStopAtLevel=1" in command.argv) == quick


@pytest.mark.parametrize(
    "more",
    [
        {"SOAL_REUSE": "off"},
        {"SOAL_SECRETS": f'{{"PGPASSWORD": "{REFERENCES["PGPASSWORD"]}"}}'},
        {"SOAL_JIT": "wrong"},
        {"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": ""},
    ],
)
def test_java_waits_for_the_first_event(tmp_path: Path, more: dict[str, str]) -> None:
    """This is so without reuse; with secrets, which a job reads at its start; and with settings that events report."""
    assert begun(environment(tmp_path, **more)) == []


def test_what_a_killed_process_has_left_is_cleaned_for_a_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lambda would otherwise restart the initialisation; the first job removes the rest and reports leftovers."""
    reuse = Begun()
    initialise(environment(tmp_path), Services(reuse=reuse))  # type: ignore[arg-type]
    assert reuse.may_clean()
    monkeypatch.setattr("handler.app._CLEAN_MAX_S", 0)
    initialise(environment(tmp_path), Services(reuse=reuse))  # type: ignore[arg-type]
    assert not reuse.may_clean()
    assert begun(environment(tmp_path, SOAL_OWN_DIRECTORIES=str(tmp_path))) == []


def test_nothing_that_goes_wrong_keeps_the_function_from_its_event(tmp_path: Path) -> None:
    """The event's answer reports a full disk or a missing Java."""
    assert begun(environment(tmp_path), fails=OSError("no space")) == []


@pytest.fixture
def sandbox(tmp_path: Path) -> Any:
    from handler.sandbox.sandbox import open_sandbox

    with open_sandbox(tmp_path) as found:
        yield found


def test_a_job_without_settings_gets_that_machine(sandbox: Sandbox) -> None:
    """The JVM's command alone equals that of such a job."""
    from handler.sandbox.script import Files
    from handler.spark.command import compose
    from handler.spark.environment import AttemptVariables
    from tests.unit.handler.spark.test_command import SETTINGS, job

    machine = Machine(3008, 2)
    early = compose_machine(sandbox, SETTINGS, machine, 900_000, {"MODE": "test"})
    attempt = AttemptVariables("run", "request", 10**12, 899_500)
    files = Files(sandbox.scripts / "job.py", ())
    late = compose(job(), files, sandbox, SETTINGS, machine, attempt, {"MODE": "test", "_X_AMZN_TRACE_ID": "Root=1"})
    assert early == late
    assert late.submission != ()


@pytest.mark.parametrize("number", ["2", "16", "0", ""])
def test_an_environment_of_several_events_does_not_start(number: str) -> None:
    """Each job empties /tmp and ends the processes of others, so the error names the setting to change."""
    with pytest.raises(InputError, match="set PerExecutionEnvironmentMaxConcurrency to 1") as refused:
        refuse_several_events({"AWS_LAMBDA_MAX_CONCURRENCY": number})
    assert refused.value.field == "AWS_LAMBDA_MAX_CONCURRENCY"


@pytest.mark.parametrize("environment", [{}, {"AWS_LAMBDA_MAX_CONCURRENCY": "1"}])
def test_an_environment_of_one_event_starts(environment: dict[str, str]) -> None:
    """A plain function has no such variable."""
    refuse_several_events(environment)
