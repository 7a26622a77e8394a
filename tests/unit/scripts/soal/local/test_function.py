from __future__ import annotations

from pathlib import Path

import pytest

from scripts.soal.console.problem import Problem
from scripts.soal.local.function import Function, assignments, function_variables
from scripts.soal.local.place import Home
from scripts.soal.target import local_target


def test_assignments_may_hold_equals_signs() -> None:
    """Only the first equals sign separates name from value; the value may be empty."""
    assert assignments(["A=1", "B=x=y", "C="]) == {"A": "1", "B": "x=y", "C": ""}


@pytest.mark.parametrize("text", ["A", "=1", ""])
def test_what_is_no_assignment_is_a_usage_error(text: str) -> None:
    """--env needs a name and an equals sign."""
    with pytest.raises(Problem) as caught:
        assignments([text])
    assert caught.value.exit_code == 2


def test_the_function_gets_the_target_the_bucket_and_what_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """--env wins over the caller's environment, which wins over the default; other variables stay outside. As on Lambda
    there is a session token.
    """
    monkeypatch.setenv("SW_WARN_BEFORE_MS", "5000")
    monkeypatch.setenv("SW_AUDIT_LOG", "false")
    monkeypatch.setenv("MINE", "1")
    home = Home(Path("/soal"))
    variables = function_variables(local_target("http://127.0.0.1:1"), "bucket", {"SW_AUDIT_LOG": "true"}, home)
    assert variables["AWS_ENDPOINT_URL_S3"] == "http://127.0.0.1:1"
    assert variables["SW_CHECKPOINT_BUCKET"] == "bucket"
    assert variables["SW_WARN_BEFORE_MS"] == "5000"
    assert variables["SW_AUDIT_LOG"] == "true"
    assert variables["SOAL_HOME"] == "/soal"
    assert variables["AWS_SESSION_TOKEN"]
    assert "MINE" not in variables


def test_without_an_emulator_the_problem_says_what_to_do(tmp_path: Path) -> None:
    """A missing binary is a problem, not a traceback."""
    function = Function({}, timeout_s=1, memory_mb=128, home=Home(tmp_path))
    with pytest.raises(Problem, match="scripts/setup"):
        function.invoke({})
