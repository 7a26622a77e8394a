"""A command on an S3 has the shared options beside its own, and ends with a problem if a store does not answer."""

from __future__ import annotations

from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from safewriter.objects import StoreError
from soal.console.problem import Problem
from soal.s3_command import Call, s3_command

RUNNER = CliRunner()


def test_a_command_takes_its_own_options_and_the_shared_ones() -> None:
    """The shared ones are one value; the command's own come as they are declared."""
    app, seen = typer.Typer(), list[object]()

    @app.command()
    @s3_command()
    def one(call: Call, name: str, limit: Annotated[int, typer.Option()] = 3) -> None:
        seen.extend((call.bucket, call.endpoint_url, call.local, name, limit))

    RUNNER.invoke(app, ["n", "--bucket", "b", "--endpoint-url", "http://here", "--limit", "2"], catch_exceptions=False)

    assert seen == ["b", "http://here", False, "n", 2]


def test_a_command_without_checkpoints_takes_no_bucket() -> None:
    """An unknown option is a usage error."""
    app = typer.Typer()
    app.command()(s3_command(has_bucket=False)(lambda call: None))

    assert RUNNER.invoke(app, []).exit_code == 0
    assert RUNNER.invoke(app, ["--bucket", "b"]).exit_code == 2


def test_a_store_s_error_is_a_problem() -> None:
    """Wherever the command meets it."""
    app = typer.Typer()

    @app.command()
    @s3_command()
    def one(call: Call) -> None:
        raise StoreError(f"GET of {call.bucket}")

    with pytest.raises(Problem, match="GET of b") as caught:
        RUNNER.invoke(app, ["--bucket", "b"], catch_exceptions=False)
    assert "ListBucket" in caught.value.todo
