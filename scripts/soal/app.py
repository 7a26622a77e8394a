"""`soal`: the command line."""

from __future__ import annotations

import logging
import sys

import typer

from scripts.soal.commands import bench, experiment, faults, image, local, locks, runs, snapshot
from scripts.soal.commands.bench_all import everything, figure
from scripts.soal.commands.doctor import doctor
from scripts.soal.commands.graduate import graduate
from scripts.soal.commands.invoke import invoke
from scripts.soal.commands.locks_demo import demo
from scripts.soal.commands.logs import logs
from scripts.soal.commands.orphans import orphans
from scripts.soal.commands.recover import recover
from scripts.soal.commands.redrive import redrive
from scripts.soal.commands.snapshot_build import build
from scripts.soal.console.output import Output
from scripts.soal.console.problem import EXIT_FAILED, Problem
from scripts.soal.console.screen import VisibleFormatter, crash

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    help="Spark on AWS Lambda, without lost writes.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(local.app, name="local")
app.add_typer(runs.app, name="runs")
locks.app.command()(demo)
app.add_typer(locks.app, name="locks")
snapshot.app.command()(build)
app.add_typer(snapshot.app, name="snapshot")
bench.app.command("all")(everything)
bench.app.command()(figure)
for _name, _app in (("bench", bench.app), ("experiment", experiment.app), ("faults", faults.app), ("image", image.app)):
    app.add_typer(_app, name=_name, rich_help_panel="Development")


@app.callback()
def _soal() -> None:
    """Spark on AWS Lambda, without lost writes."""


app.command()(doctor)
app.command()(invoke)
app.command()(logs)
app.command()(graduate)
app.command()(recover)
app.command()(redrive)
app.command()(orphans)


def main() -> None:
    """Run the command line and end the process."""
    if logging.lastResort is not None:  # nobody else handles what libraries log
        logging.lastResort.setFormatter(VisibleFormatter())
    try:
        app()
    except Problem as problem:
        Output(as_json=False).problem(problem)
        sys.exit(problem.exit_code)
    except Exception as error:  # noqa: BLE001 - the end of the command
        crash(error)
        sys.exit(EXIT_FAILED)


if __name__ == "__main__":
    main()
