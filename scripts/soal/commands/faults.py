"""`soal faults`: the fault campaign, its cases and what they have found."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from scripts.soal.console.output import Output
from scripts.soal.console.problem import EXIT_TRY_AGAIN, Problem
from scripts.soal.console.progress import Counting
from scripts.soal.console.view import View, columns
from scripts.soal.options import Json

if TYPE_CHECKING:
    from rich.table import Table

    from scripts.campaign.report import Count

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    help="The fault campaign: every mutating request of a write, hit in every way, with the guard and without it.",
)


@app.command()
def run(
    folder: Annotated[Path, typer.Argument(help="The folder of the results; an interrupted campaign goes on there.")],
    *,
    select: Annotated[
        str,
        typer.Option(help="Words that a name must hold, as in delta-append-guarded-torn; -WORD: must not."),
    ] = "",
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Cases at once.")] = os.cpu_count() or 1,
    budget_min: Annotated[
        float | None, typer.Option(min=0.0, help="No case begins after so many minutes; exit code 75 if some are left.")
    ] = None,
) -> None:
    """Carry out the campaign: a process for each write and each retry, real Spark, a real SIGKILL or SIGSTOP.

    The requests are listed nowhere: the first, the second, the third is hit, until a write ends unhurt.
    """
    from scripts.campaign.running import run
    from scripts.results import OtherResultsError

    out = Output(as_json=False)
    with Counting(out.talk, "hitting requests", unit="cases") as counting:
        try:
            finished = run(
                folder,
                select=select,
                jobs=jobs,
                budget_s=None if budget_min is None else budget_min * 60,
                progress=counting.seen,
            )
        except OtherResultsError as error:
            raise Problem(str(error), todo="give another folder, or the same commit and machine") from error
        except ValueError as error:
            raise Problem(str(error), todo="give words as in delta-append-guarded-torn") from error
    if not finished:
        raise Problem("the time is over, and cases are left", todo="run the command again", exit_code=EXIT_TRY_AGAIN)
    out.remark(f"{folder} holds all cases; `soal faults report {folder}` counts them")


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="The folder of the results.")],
    *,
    as_json: Json = False,
) -> None:
    """Count the cases that broke a promise, with the guard and without it.

    Exit codes: 0 no guarded case did, 1 some did; their names follow.
    """
    from scripts.campaign.cases import Case
    from scripts.campaign.record import CASES, CaseRecord
    from scripts.campaign.report import counts
    from scripts.results import read

    out = Output(as_json=as_json)
    records = read(folder / CASES, CaseRecord)
    if not records:
        raise Problem(f"{folder} holds no cases", todo=f"soal faults run {folder}")
    found = counts(records)
    broken = [one.case for one in records if one.violations and Case.parse(one.case).sequence.guarded]
    out.show(View({"counts": [asdict(one) for one in found], "broken": broken}, (_table(found),)))
    for name in broken:
        out.remark(f"broken: {name} (soal faults replay {name})")
    if broken:
        raise typer.Exit(1)


@app.command()
def replay(
    case: Annotated[str, typer.Argument(help="A case's name, as in its row: delta-append-guarded-torn-03.")],
    *,
    as_json: Json = False,
) -> None:
    """Carry out one case again, and show its row.

    Exit codes: 0 no promise was broken, 1 one was.
    """
    from scripts.campaign.cases import Case
    from scripts.campaign.running import replay

    out = Output(as_json=as_json)
    try:
        chosen = Case.parse(case)
    except ValueError as error:
        raise Problem(str(error), todo="take the name from a row") from error
    record = replay(chosen)
    table = columns("field", "value")
    for name, value in record.model_dump(mode="json").items():
        table.add_row(name.replace("_", " "), str(value))
    out.show(View(record.model_dump(mode="json"), (table,)))
    if record.violations:
        raise typer.Exit(1)


def _table(found: tuple[Count, ...]) -> Table:
    kinds = [name for name in found[0].broken if any(one.broken[name] for one in found)]
    table = columns("format", "guard", "cases", "broken", *(kind.replace("_", " ") for kind in kinds))
    for one in found:
        table.add_row(
            one.table_format,
            "SafeWriter" if one.guarded else "none",
            str(one.cases),
            str(one.broken_cases),
            *(str(one.broken[kind]) for kind in kinds),
        )
    return table
