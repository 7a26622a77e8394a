"""`scripts/lab experiment`: the paper's experiment, its runs and their report."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated, Final, Literal

import typer
from rich.progress import Progress, TimeRemainingColumn

from soal.console.output import Output
from soal.console.problem import Problem
from soal.console.view import View
from soal.options import Json

__all__ = ["app"]

_SEED: Final = 20_261_120

app = typer.Typer(
    no_args_is_help=True,
    help="The paper's experiment: kills between the data and the commit of a write, with a guard and without.",
)


@app.command()
def run(
    folder: Annotated[Path, typer.Argument(help="The folder of the results; an interrupted run goes on there.")],
    *,
    plan: Annotated[
        Literal["paper", "ours", "all"],
        typer.Option(help="The paper's 860 runs; ours beside them: guarded baselines, and undone writes; or both."),
    ] = "paper",
    scale: Annotated[
        float, typer.Option(min=0.001, max=100, help="So many times the runs of each cell, at least one.")
    ] = 1.0,
    jobs: Annotated[
        int, typer.Option(min=1, max=64, help="Killed runs at once; those that are timed have the machine alone.")
    ] = os.cpu_count() or 1,
    seed: Annotated[int, typer.Option(help="Of the order of the runs.")] = _SEED,
    small: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="A CSV file with semicolons and a header, in place of 22k."),
    ] = None,
) -> None:
    """Carry out a plan, each run in a fresh process: the paper's plan takes an hour or two on two cores.

    Each kill is a real SIGKILL, at an exact request to S3. deltalake and pyiceberg read the tables.
    """
    from tests.lab.experiment.running import Settings, run
    from tests.lab.results import OtherResultsError

    out = Output(as_json=False)
    settings = Settings(plan, scale, seed, None if small is None else str(small))
    columns = (*Progress.get_default_columns()[:-1], TimeRemainingColumn(elapsed_when_finished=True))
    with Progress(*columns, console=out.talk, transient=True, disable=not out.talk.is_terminal) as shown:
        task = shown.add_task("runs", total=None)
        try:
            run(
                settings,
                folder,
                jobs=jobs,
                progress=lambda done, total: shown.update(task, completed=done, total=total),
            )
        except OtherResultsError as error:
            raise Problem(str(error), todo="give another folder, or the same options and commit") from error
        except ValueError as error:
            raise Problem(str(error), todo="give a file like that of the paper") from error
    out.remark(f"{folder} holds all runs; `scripts/lab experiment report {folder}` makes tables and figures of them")


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="The folder of the results.")],
    *,
    as_json: Json = False,
) -> None:
    """Show the paper's figures beside the measured ones, and write report.html and figures (SVG, PNG) into the folder.

    Exit codes: 0 done, 1 a guarded run broke the promise.
    """
    from tests.lab.experiment.report import report_of

    out = Output(as_json=as_json)
    try:
        made = report_of(folder)
    except FileNotFoundError as error:
        raise Problem(str(error), todo=f"scripts/lab experiment run {folder}") from error
    out.show(View(made.document, made.tables))
    out.remark(f"wrote {', '.join(str(path) for path in made.files)}")
    if made.missing:
        out.remark(f"{made.missing} runs of the plan are missing; scripts/lab experiment run {folder} carries them out")
    if made.violations:
        raise typer.Exit(1)
