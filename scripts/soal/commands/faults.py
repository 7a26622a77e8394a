"""`soal faults`: the fault campaign, its cases and what they have found."""

from __future__ import annotations

import os
from dataclasses import asdict
from enum import StrEnum
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


class Tier(StrEnum):
    """How the faults are made."""

    LIVE = "live"
    REPLAY = "replay"


app = typer.Typer(
    no_args_is_help=True,
    help="The fault campaign: every mutating request of a write, hit in every way, with the guard and without it.",
)


@app.command()
def run(
    folder: Annotated[Path, typer.Argument(help="The folder of the results; an interrupted campaign goes on there.")],
    *,
    tier: Annotated[
        Tier,
        typer.Option(help="live: real processes, real kills. replay: what a crash can leave of a recorded write."),
    ] = Tier.LIVE,
    select: Annotated[
        str,
        typer.Option(
            help="Words that a name must hold, as in delta-append-guarded-torn or iceberg-merge-write; -WORD: must not."
        ),
    ] = "",
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Cases at once.")] = os.cpu_count() or 1,
    budget_min: Annotated[
        float | None, typer.Option(min=0.0, help="No case begins after so many minutes; exit code 75 if some are left.")
    ] = None,
) -> None:
    """Carry out the campaign. Live: a process for each write and each retry, real Spark, a real SIGKILL or SIGSTOP.

    The requests are listed nowhere: the first, the second, the third is hit, until a write ends unhurt. Replay: one
    write of each kind is recorded, and each set of its requests that a crash can leave is settled by the real code.
    """
    from scripts.campaign.running import run
    from scripts.results import OtherResultsError

    out = Output(as_json=False)
    what, unit = ("hitting requests", "cases") if tier is Tier.LIVE else ("settling crash states", "states")
    with Counting(out.talk, what, unit=unit) as counting:
        try:
            finished = run(
                folder,
                tier.value,
                select=select,
                jobs=jobs,
                budget_s=None if budget_min is None else budget_min * 60,
                progress=counting.seen,
            )
        except OtherResultsError as error:
            raise Problem(str(error), todo="give another folder, or the same commit and machine") from error
        except ValueError as error:
            raise Problem(str(error), todo="give words as in delta-append") from error
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
    from scripts.campaign.record import CASES, STATES, CaseRecord, StateRecord
    from scripts.campaign.report import broken_in, counts
    from scripts.results import read

    out = Output(as_json=as_json)
    cases, states = read(folder / CASES, CaseRecord), read(folder / STATES, StateRecord)
    if not cases and not states:
        raise Problem(f"{folder} holds no cases", todo=f"soal faults run {folder}")
    found, broken = counts(cases, states), broken_in(cases, states)
    out.show(View({"counts": [asdict(one) for one in found], "broken": broken}, (_table(found),)))
    for name in broken:
        out.remark(f"broken: {name} (soal faults replay {name} --folder {folder})")
    if broken:
        raise typer.Exit(1)


@app.command()
def replay(
    name: Annotated[
        str,
        typer.Argument(help="As in its row: delta-append-guarded-torn-03, delta-append-write-1f-20-sweeper-die2."),
    ],
    *,
    folder: Annotated[
        Path | None,
        typer.Option(exists=True, file_okay=False, help="The results with the recording of a crash state."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Carry out one case again, or settle one crash state, and show its row.

    Without its folder a crash state is that of a new recording. Exit codes: 0 no promise was broken, 1 one was.
    """
    from scripts.campaign.running import replay

    out = Output(as_json=as_json)
    try:
        record = replay(name, folder)
    except ValueError as error:
        raise Problem(str(error), todo="take the name from a row") from error
    table = columns("field", "value")
    for field, value in record.model_dump(mode="json").items():
        table.add_row(field.replace("_", " "), str(value))
    out.show(View(record.model_dump(mode="json"), (table,)))
    if record.violations:
        raise typer.Exit(1)


def _table(found: tuple[Count, ...]) -> Table:
    kinds = [name for name in found[0].broken if any(one.broken[name] for one in found)]
    table = columns("tier", "format", "guard", "cases", "broken", *(kind.replace("_", " ") for kind in kinds))
    for one in found:
        table.add_row(
            one.tier,
            one.table_format,
            "SafeWriter" if one.guarded else "none",
            str(one.cases),
            str(one.broken_cases),
            *(str(one.broken[kind]) for kind in kinds),
        )
    return table
