"""`soal doctor`: this machine, a script, or a deployed function.

Each of the three imports its dependencies only when it runs.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path  # noqa: TC003 - as below
from typing import TYPE_CHECKING, Annotated

import typer

from handler.spark.missing_dependencies import SLIM, Variant
from soal.clone import from_clone
from soal.console.output import Output
from soal.console.problem import EXIT_FAILED, Problem
from soal.doctor.finding import findings_view
from soal.home import Home
from soal.options import Json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safewriter.objects import Location
    from soal.doctor.finding import Finding


def doctor(
    script: Annotated[
        Path | None, typer.Argument(help="A script: what to change in it. It is read, not run.", show_default=False)
    ] = None,
    endpoint_url: Annotated[
        str | None,
        typer.Option(
            help="Use this endpoint, with your AWS credentials; default: that of `soal local up` (--function: AWS)."
        ),
    ] = None,
    function: Annotated[
        str | None, typer.Option("--function", "-f", help="A deployed function: its name or ARN.")
    ] = None,
    variant: Annotated[Variant, typer.Option(help="With a script: the variant of the image to run it on.")] = SLIM,
    table: Annotated[
        list[str] | None,
        typer.Option(help="With --function: a table that jobs write to, s3://bucket/table; may be given again."),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Examine this machine, a function or a script. Exit code 1 if something must be done before jobs can run."""
    out = Output(as_json=as_json)
    if function is not None and script is not None:
        raise Problem("a script and --function cannot be combined", todo="ask them one after the other")
    if function is not None:
        from soal.doctor.function import examine_function
        from soal.remote.aws import aws_client

        tables = [_location(uri) for uri in table or ()]
        findings = tuple(examine_function(function, lambda service: aws_client(service, endpoint_url), tables))
    else:
        findings = tuple(_machine(endpoint_url) if script is None else _script(script, variant))
    out.show(findings_view(findings))
    if any(finding.status == "fail" for finding in findings):
        raise typer.Exit(EXIT_FAILED)


def _location(table: str) -> Location:
    from safewriter.objects import Location

    try:
        return Location.parse(table)
    except ValueError as error:
        raise Problem(f"--table: {error}", todo="write s3://bucket/table") from error


def _machine(endpoint_url: str | None) -> Iterator[Finding]:
    from soal.local.state import running
    from soal.target import checkpoint_bucket, find_target

    machine = from_clone("scripts.doctor.machine", "soal doctor without a script or --function")
    home = Home.of()
    has_target = endpoint_url is not None or running(home) is not None
    target = find_target(endpoint_url, home, local=endpoint_url is None) if has_target else None
    bucket = None if target is None else checkpoint_bucket(target)
    findings: Iterator[Finding] = machine.examine(home, os.environ.get("JAVA_HOME"), target, bucket)
    return findings


def _script(path: Path, variant: Variant) -> Iterator[Finding]:
    from soal.doctor.script import examine_script

    try:
        yield from examine_script(path, variant)
    except OSError as error:
        todo = f"give a Python script on this machine; for a function: soal doctor --function {shlex.quote(str(path))}"
        raise Problem(f"{path}: {error.strerror}", todo=todo) from error
