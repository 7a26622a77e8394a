"""`soal doctor` takes a script as its argument."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from soal.console.problem import Problem
from tests.support.command_line import app

if TYPE_CHECKING:
    from pathlib import Path

RUNNER = CliRunner()


def test_a_script_is_the_argument(tmp_path: Path) -> None:
    """It is examined instead of this machine."""
    script = tmp_path / "my_job.py"
    script.write_text("import polars\n", encoding="utf-8")
    answer = RUNNER.invoke(app, ["doctor", str(script), "--json"])
    assert answer.exit_code == 0
    assert [finding["name"] for finding in json.loads(answer.output)] == ["my_job.py:1"]


def test_what_is_no_script_may_be_a_function() -> None:
    """The problem says how to ask about either."""
    answer = RUNNER.invoke(app, ["doctor", "soal-jobs"])
    assert isinstance(answer.exception, Problem)
    assert str(answer.exception) == "soal-jobs: No such file or directory"
    assert "soal doctor --function soal-jobs" in answer.exception.todo


def test_a_script_and_a_function_are_two_questions() -> None:
    """Neither is examined."""
    with pytest.raises(Problem, match="cannot be combined"):
        RUNNER.invoke(app, ["doctor", "my_job.py", "--function", "soal-jobs"], catch_exceptions=False)
