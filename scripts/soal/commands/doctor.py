"""`soal doctor`: this machine, a script, or a deployed function."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - as below
from typing import TYPE_CHECKING, Annotated

import typer

from safewriter.objects import Location
from scripts.soal.commands import local  # noqa: TC001 - typer reads the annotations
from scripts.soal.console.output import output
from scripts.soal.console.problem import EXIT_FAILED, Problem
from scripts.soal.doctor.function import examine_function
from scripts.soal.doctor.machine import examine
from scripts.soal.doctor.script import examine_script
from scripts.soal.local.place import Home
from scripts.soal.remote.aws import aws_client
from scripts.soal.target import checkpoint_bucket, target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scripts.soal.doctor.finding import Finding

__all__ = ["doctor"]


def doctor(
    endpoint_url: Annotated[
        str | None, typer.Option(help="S3 to look at; without: the one of `soal local up`. With --function: AWS's.")
    ] = None,
    function: Annotated[
        str | None, typer.Option("--function", "-f", help="A deployed function instead, by its name or ARN.")
    ] = None,
    script: Annotated[
        Path | None, typer.Option(help="A script of yours instead: what to change in it; it is read, not run.")
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(help="With --function: a table that jobs write to, s3://bucket/table; may be given again."),
    ] = None,
    *,
    as_json: local.Json = False,
) -> None:
    """Look at this machine, a function or a script; exit code 1 if something must be done before jobs can run."""
    out = output(is_json=as_json)
    if function is not None and script is not None:
        raise Problem("--function and --script are two questions", todo="ask them one after the other")
    if function is not None:
        tables = [_location(each) for each in table or ()]
        findings = tuple(examine_function(function, lambda service: aws_client(service, endpoint_url), tables))
    else:
        findings = tuple(_machine(endpoint_url) if script is None else _script(script))
    out.findings(findings)
    if any(finding.status == "fail" for finding in findings):
        raise typer.Exit(EXIT_FAILED)


def _location(table: str) -> Location:
    try:
        return Location.parse(table)
    except ValueError as error:
        raise Problem(f"--table: {error}", todo="write s3://bucket/table") from error


def _machine(endpoint_url: str | None) -> Iterator[Finding]:
    home = Home.of()
    try:
        found = target(endpoint_url, home)
    except Problem:
        if endpoint_url is not None:
            raise
        found = None
    bucket = None if found is None else checkpoint_bucket(found, os.environ)
    return examine(home, os.environ.get("JAVA_HOME"), found, bucket)


def _script(path: Path) -> Iterator[Finding]:
    try:
        yield from examine_script(path)
    except OSError as error:
        raise Problem(f"--script {path}: {error.strerror}", todo="give a Python script on this machine") from error
