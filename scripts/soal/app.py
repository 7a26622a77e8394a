"""`soal`: the command line."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from scripts.soal import bench, image, local, runs
from scripts.soal.doctor import examine
from scripts.soal.graduate import graduate
from scripts.soal.invoke import invoke
from scripts.soal.logs import logs
from scripts.soal.orphans.command import orphans
from scripts.soal.output import output
from scripts.soal.place import Home
from scripts.soal.problem import EXIT_FAILED, Problem
from scripts.soal.recover import recover
from scripts.soal.target import checkpoint_bucket, target

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    help="Spark on AWS Lambda, without lost writes.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(local.app, name="local")
app.add_typer(bench.app, name="bench")
app.add_typer(image.app, name="image")
app.add_typer(runs.app, name="runs")


@app.callback()
def _soal() -> None:
    """Spark on AWS Lambda, without lost writes."""


@app.command()
def doctor(
    endpoint_url: Annotated[
        str | None, typer.Option(help="S3 to look at; without: the one of `soal local up`.")
    ] = None,
    *,
    as_json: local.Json = False,
) -> None:
    """Look at the local set-up; exit code 1 if something must be done before jobs can run."""
    out = output(is_json=as_json)
    home = Home.of()
    try:
        found = target(endpoint_url, home)
    except Problem:
        if endpoint_url is not None:
            raise
        found = None
    bucket = None if found is None else checkpoint_bucket(found, os.environ)
    findings = tuple(examine(home, os.environ.get("JAVA_HOME"), found, bucket))
    out.findings(findings)
    if any(finding.status == "fail" for finding in findings):
        raise typer.Exit(EXIT_FAILED)


app.command()(invoke)
app.command()(logs)
app.command()(graduate)
app.command()(recover)
app.command()(orphans)


def main() -> None:
    """Run the command line and end the process."""
    try:
        app()
    except Problem as problem:
        output(is_json=False).problem(problem)
        sys.exit(problem.exit_code)


if __name__ == "__main__":
    main()
