from __future__ import annotations

import subprocess
import sys
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
    """A command's line stands in the table of commands, and in its docstring."""
    light = RUNNER.invoke(app.app_of(""), ["--help"], prog_name="soal")
    whole = RUNNER.invoke(app.app_of(), ["--help"], prog_name="soal")
    assert light.output == whole.output
    assert all(command.name in light.output for command in app.COMMANDS)


def test_the_list_of_commands_imports_none_of_them() -> None:
    """Nor what they need: it is there at once."""
    program = "import sys; from soal.app import app_of; app_of(''); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert "soal.app" in loaded
    assert not loaded & {"boto3", "botocore", "handler", "moto", "psutil", "pydantic", "rich", "safewriter", "scripts"}


@pytest.mark.parametrize("command", ["doctor", "image", "local"])
def test_a_command_that_needs_no_aws_is_there_at_once(command: str) -> None:
    """It imports neither clients of AWS nor the handler's and SafeWriter's own code before it is asked to work."""
    program = f"import sys; from soal.app import app_of; app_of({command!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert not loaded & {"boto3", "botocore", "handler.settings", "moto", "safewriter"}


@pytest.mark.parametrize("command", [command.name for command in app.COMMANDS])
def test_a_command_is_imported_when_it_is_called(command: str) -> None:
    """And answers as itself."""
    shown = RUNNER.invoke(app.app_of(command), [command, "--help"], prog_name="soal")
    assert shown.exit_code == 0
    assert f"Usage: soal {command}" in shown.output


def test_a_command_of_a_clone_says_so_where_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an installed package, which has no `scripts`, whatever other package has that name."""
    monkeypatch.setattr(clone, "FUNCTION", tmp_path)
    with pytest.raises(Problem, match="soal local needs a clone"):
        app.app_of("local")


def test_the_command_s_exit_codes_are_those_of_the_guard_s_errors() -> None:
    """A shell tells by one table what to do, whichever program has ended."""
    ours = {name: value for name, value in vars(problem).items() if name.startswith("EXIT_")}
    assert ours == {name: value for name, value in vars(errors).items() if name.startswith("EXIT_")}
