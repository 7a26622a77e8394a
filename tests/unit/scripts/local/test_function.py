"""`soal local invoke` gives the function variables from defaults, caller and --env, and names a missing emulator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from scripts.local.function import Function, assignments, function_variables
from soal.console.problem import Problem
from soal.home import Home
from soal.target import local_target

if TYPE_CHECKING:
    from soal.target import Target


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
    """--env overrides the caller's environment, which overrides the default. Other variables stay outside. As on Lambda
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
    """A missing emulator is a problem with a remedy, not a traceback."""
    function = Function({}, timeout_s=1, memory_mb=128, home=Home(tmp_path))
    with pytest.raises(Problem, match="scripts/setup"):
        function.invoke({})


def test_the_function_finds_the_local_catalog_beside_the_settings_that_were_given() -> None:
    """Given settings override the catalog's. Invalid JSON goes to the handler, which reports it."""
    target, home = local_target("http://127.0.0.1:1", "http://127.0.0.1:1/c"), Home(Path("/soal"))
    local = {
        "spark.sql.catalog.local": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.local.type": "rest",
        "spark.sql.catalog.local.uri": "http://127.0.0.1:1/c",
    }

    def conf(text: str, target: Target = target) -> str:
        return function_variables(target, None, {"SOAL_CONF": text}, home)["SOAL_CONF"]

    assert json.loads(function_variables(target, None, {}, home)["SOAL_CONF"]) == local
    given = {"spark.sql.catalog.local.uri": "http://mine", "spark.sql.ansi.enabled": "true"}
    assert json.loads(conf(json.dumps(given))) == {**local, **given}
    assert [conf(text) for text in ("{", "[1]", "null")] == ["{", "[1]", "null"]
    assert conf("{}", local_target("http://127.0.0.1:1")) == "{}"
