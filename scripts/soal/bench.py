"""`soal bench …`: measure what is claimed, on this machine."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.progress import Progress

from scripts.bench import guard as guard_bench
from scripts.soal import local  # noqa: TC001 - typer reads the annotations
from scripts.soal.output import output

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Measure, each pair side by side in one run.")


@app.callback()
def _bench() -> None:
    """Measure, each pair side by side in one run."""


@app.command()
def guard(
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Pairs of a plain and a guarded append.")] = 20,
    rows: Annotated[int, typer.Option(min=1, help="Rows of each append.")] = 22_248,
    *,
    as_json: local.Json = False,
) -> None:
    """What SafeWriter adds to a Delta append in a warm session, on an embedded S3."""
    out = output(is_json=as_json)
    with Progress(console=out.talk, transient=True, disable=not out.talk.is_terminal) as progress:
        task = progress.add_task("appends", total=rounds)
        cost = guard_bench.measure(rounds, rows, lambda done: progress.update(task, completed=done))
    out.figures(cost)
