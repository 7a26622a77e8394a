"""`scripts/lab bench all` and `scripts/lab bench figure`: a full run of the benchmarks, and the picture of it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from scripts.image.build import TAG
from scripts.image.docker import require, with_docker
from soal.console.output import Output
from soal.console.problem import EXIT_FAILED, Problem
from soal.console.view import View, columns
from soal.home import Home
from soal.options import Json

__all__ = ["everything", "figure"]

_Results = Annotated[Path, typer.Argument(help="The file of results, a line of JSON for each benchmark.")]


def everything(
    results: _Results,
    *,
    short: Annotated[bool, typer.Option("--short", help="Only three, with one round each.")] = False,
    as_json: Json = False,
) -> None:
    """Run all benchmarks, each in a process of its own: half an hour on a quiet machine. An interrupted run resumes."""
    from tests.lab.bench import plan

    out = Output(as_json=as_json)
    outcomes = plan.run(
        plan.SHORT if short else plan.FULL,
        results,
        lambda step: out.remark(f"scripts/lab bench {step}"),
        docker=not short and _has_image(),
    )
    table = columns("scripts/lab bench", "outcome")
    for one in outcomes:
        table.add_row(str(one.step), one.problem or ("measured before" if one.kept else "measured"))
    out.show(View([{**asdict(one), "step": str(one.step)} for one in outcomes], (table,)))
    if any(one.problem is not None for one in outcomes):
        raise typer.Exit(EXIT_FAILED)


def _has_image() -> bool:
    try:
        with with_docker(Home.of()) as docker:
            require(docker, TAG)
    except Problem:
        return False
    return True


def figure(
    results: _Results,
    picture: Annotated[Path, typer.Argument(help="The picture to write, SVG.")],
) -> None:
    """Draw the newest results of a file: the sample append by each way, and the cost of the guard."""
    from tests.lab.bench.picture import picture as drawn
    from tests.lab.bench.record import read

    try:
        picture.write_text(drawn(read(results)), encoding="utf-8")
    except LookupError as error:
        raise Problem(f"{results}: {error}", todo=f"scripts/lab bench all {results}") from error
    Output(as_json=False).remark(f"wrote {picture}")
