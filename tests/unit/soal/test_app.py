"""The command line `soal` imports a command only when it is called, and shares exit codes with the guard."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from safewriter import errors
from soal import app, clone
from soal.console import problem
from soal.console.problem import Problem

if TYPE_CHECKING:
    from pathlib import Path

RUNNER = CliRunner()


def test_the_list_of_commands_is_the_same_whether_they_are_imported_or_not() -> None:
    """Help is the same with and without imports: a command's line is in the table and in its docstring."""
    light = RUNNER.invoke(app.app_of(""), ["--help"], prog_name="soal")
    whole = RUNNER.invoke(app.app_of(), ["--help"], prog_name="soal")
    assert light.output == whole.output
    assert all(command.name in light.output for command in app.COMMANDS)


def test_the_command_tells_the_version_of_its_distribution() -> None:
    """An issue's first question can be answered without pip."""
    told = RUNNER.invoke(app.app_of(""), ["--version"], prog_name="soal")
    assert (told.exit_code, told.output) == (0, f"soal {version('soal')}\n")


def test_the_list_of_commands_imports_none_of_them() -> None:
    """The list of commands imports neither the commands nor their dependencies."""
    program = "import sys; from soal.app import app_of; app_of(''); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert "soal.app" in loaded
    assert not loaded & {"boto3", "botocore", "handler", "moto", "psutil", "pydantic", "rich", "safewriter", "scripts"}


@pytest.mark.parametrize("command", ["doctor", "image", "local"])
def test_a_command_that_needs_no_aws_is_there_at_once(command: str) -> None:
    """These commands import neither AWS clients nor the handler's and SafeWriter's code before they run."""
    program = f"import sys; from soal.app import app_of; app_of({command!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert not loaded & {"boto3", "botocore", "handler.settings", "moto", "safewriter"}


@pytest.mark.parametrize("command", [command.name for command in app.COMMANDS])
def test_a_command_is_imported_when_it_is_called(command: str) -> None:
    """A command is imported when it is called, and shows its own help."""
    shown = RUNNER.invoke(app.app_of(command), [command, "--help"], prog_name="soal")
    assert shown.exit_code == 0
    assert f"Usage: soal {command}" in shown.output


def test_a_command_of_a_clone_says_so_where_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command of a clone says so in an installed package, even if another package is called `scripts`."""
    monkeypatch.setattr(clone, "FUNCTION", tmp_path)
    with pytest.raises(Problem, match="soal local needs a clone"):
        app.app_of("local")


def test_the_command_s_exit_codes_are_those_of_the_guard_s_errors() -> None:
    """The exit codes of command and guard are equal, so that a script needs only one table."""
    ours = {name: value for name, value in vars(problem).items() if name.startswith("EXIT_")}
    assert ours == {name: value for name, value in vars(errors).items() if name.startswith("EXIT_")}
