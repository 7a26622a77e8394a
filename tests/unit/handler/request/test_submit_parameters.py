"""The handler parses an event's `sparkSubmitParameters` as a shell would, and refuses options unknown here."""

from __future__ import annotations

import pytest

from handler.input_errors import InputError
from handler.request.submit_parameters import parse_submit_parameters


def test_the_usual_options() -> None:
    """Settings, resources, Python files and the name; quoted as in a shell, but without one."""
    found = parse_submit_parameters(
        "--conf spark.a.b=1 --conf 'spark.c=x y' -c spark.d=a=b --driver-memory 2g --py-files s3://l/a.zip,s3://l/b.py"
        " --name nightly --num-executors=3 --conf=spark.e=$(id)",
        "p",
    )
    assert found.conf == {
        "spark.a.b": "1",
        "spark.c": "x y",
        "spark.d": "a=b",
        "spark.driver.memory": "2g",
        "spark.executor.instances": "3",
        "spark.e": "$(id)",
    }
    assert found.py_files == ("s3://l/a.zip", "s3://l/b.py")
    assert found.name == "nightly"


def test_nothing_is_nothing() -> None:
    """An empty string is allowed."""
    assert parse_submit_parameters("  ", "p").conf == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("--master local", "own local Spark"),
        ("--jars s3://x/y.jar", "derived image"),
        ("--conf", "has no value"),
        ("--conf spark.a", "must be key=value"),
        ("--verbose now", "not an option that is known"),
        ("job.py", "entryPointArguments"),
        ("--conf 'a", "check the quotes"),
    ],
)
def test_what_is_refused(text: str, problem: str) -> None:
    """Each refusal names the remedy."""
    with pytest.raises(InputError, match=problem):
        raise InputError.of(parse_submit_parameters(text, "p").wrong)
