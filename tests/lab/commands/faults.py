"""`scripts/lab faults`: the fault campaign, its cases and what they have found."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

from soal.console.output import Output
from soal.console.problem import EXIT_TRY_AGAIN, Problem
from soal.console.progress import Counting
from soal.console.view import View, columns
from soal.options import Json

if TYPE_CHECKING:
    from rich.table import Table

    from tests.lab.campaign.report import Count

__all__ = ["app"]


class S3(StrEnum):
    """The servers behind the emulator's wire."""

    MOTO = "moto"
    SEAWEEDFS = "seaweedfs"


class Tier(StrEnum):
    """The source of the faults."""

    LIVE = "live"
    REPLAY = "replay"
    RANDOM = "random"
    SCENARIOS = "scenarios"
    SCHEDULES = "schedules"
    SCRIPTS = "scripts"


_UNITS: Final = {
    Tier.REPLAY: ("settling crash states", "states"),
    Tier.SCENARIOS: ("playing scenarios", "scenarios"),
    Tier.SCHEDULES: ("playing schedules", "blocks of 500"),
    Tier.SCRIPTS: ("running scripts", "scripts"),
}

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
        typer.Option(
            help="live: a real kill at each request. random: real faults at moments by chance. replay: what a crash can"
            " leave of a recorded write. scenarios: recoveries, invocations, turns and builds, hit at each request."
            " scripts: scripts that do it wrong, each run twice, without a fault. schedules: several writers and"
            " settlers with faults, in memory and on a virtual clock, as a seed draws them."
        ),
    ] = Tier.LIVE,
    select: Annotated[
        str,
        typer.Option(
            help="Words that a name must hold, as in delta-append-guarded-torn or iceberg-merge-write; -WORD: must not."
        ),
    ] = "",
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Cases at once.")] = os.cpu_count() or 1,
    s3: Annotated[S3, typer.Option(help="The S3 under the faults.")] = S3.MOTO,
    seed: Annotated[int, typer.Option(min=0, help="Of the tier random; of the tier schedules the first.")] = 1,
    faults: Annotated[int, typer.Option(min=1, help="Of the tier random: how many guarded writes.")] = 1_000,
    seeds: Annotated[int, typer.Option(min=1, help="Of the tier schedules: how many.")] = 10_000,
    budget_min: Annotated[
        float | None, typer.Option(min=0.0, help="No case begins after so many minutes; exit code 75 if some are left.")
    ] = None,
) -> None:
    """Carry out the campaign. Live: a process for each write and each retry, real Spark, a real SIGKILL or SIGSTOP.

    The requests are listed nowhere: the first, the second, the third is hit, until none is left. Replay: one write of
    each kind is recorded, and the real code settles each set of its requests that a crash can leave.
    """
    from tests.lab.campaign.running import run
    from tests.lab.results import OtherResultsError

    out = Output(as_json=False)
    what, unit = _UNITS.get(tier, ("hitting writes", "cases"))
    with Counting(out.talk, what, unit=unit) as counting:
        try:
            finished = run(
                folder,
                tier.value,
                select=select,
                jobs=jobs,
                budget_s=None if budget_min is None else budget_min * 60,
                s3=s3.value,
                seed=seed,
                faults=faults,
                seeds=seeds,
                progress=counting.show,
            )
        except OtherResultsError as error:
            raise Problem(str(error), todo="give another folder, or the same commit and machine") from error
        except ValueError as error:
            raise Problem(str(error), todo="give words as in delta-append") from error
    if not finished:
        raise Problem(
            "cases are left: the time is over, or a scenario reached its own time limit",
            todo="run the command again",
            exit_code=EXIT_TRY_AGAIN,
        )
    out.remark(f"{folder} holds all cases; `scripts/lab faults report {folder}` counts them")


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="The folder of the results.")],
    *,
    select: Annotated[str, typer.Option(help="Only names that hold these words, as of scripts/lab faults run.")] = "",
    as_json: Json = False,
) -> None:
    """Count the cases that broke a promise, with the guard and without it.

    Exit codes: 0 no guarded case did, 1 some did; their names follow.
    """
    from tests.lab.campaign.report import Results, broken_in, counts
    from tests.lab.campaign.running import MANIFEST

    out = Output(as_json=as_json)
    results = Results.of(folder, select)
    found, broken = counts(results), broken_in(results)
    if not found:
        raise Problem(f"{folder} holds no case that counts", todo=f"scripts/lab faults run {folder}")
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    told = {
        "manifest": manifest,
        "counts": [asdict(one) for one in found],
        "skipped": results.skipped,
        "broken": broken,
    }
    if (effort := results.effort) is not None:
        told["effort"] = effort
    out.show(View(told, (_table(found),)))
    if results.skipped:
        out.remark(f"{results.skipped} scenarios were skipped, and count for nothing")
    for name in broken:
        again = shlex.join(["scripts/lab", "faults", "replay", name, "--folder", str(folder), "--s3", manifest["s3"]])
        out.remark(f"broken: {name} ({again})")
    if broken:
        raise typer.Exit(1)


@app.command()
def replay(
    name: Annotated[
        str,
        typer.Argument(
            help="As in its row: delta-append-guarded-torn-03, delta-append-write-1f-20-sweeper-die2, a test's name,"
            " schedule-4711, delta-sinks-save-as-table."
        ),
    ],
    *,
    folder: Annotated[
        Path | None,
        typer.Option(exists=True, file_okay=False, help="The results with the recording of a crash state."),
    ] = None,
    s3: Annotated[S3, typer.Option(help="The S3 under the fault.")] = S3.MOTO,
    as_json: Json = False,
) -> None:
    """Carry out one case or scenario again, or settle one crash state, and show its row.

    Without its folder a crash state uses a new recording. Exit codes: 0 no promise was broken, 1 one was.
    """
    from tests.lab.campaign.running import is_broken, replay

    out = Output(as_json=as_json)
    try:
        record = replay(name, folder, s3.value)
    except ValueError as error:
        raise Problem(str(error), todo="take the name from a row") from error
    table = columns("field", "value")
    for field, value in record.model_dump(mode="json").items():
        table.add_row(field.replace("_", " "), Text(str(value)))  # a test's parameters are no markup
    out.show(View(record.model_dump(mode="json"), (table,)))
    if is_broken(record):
        raise typer.Exit(1)


@app.command()
def mutants(
    folder: Annotated[Path, typer.Argument(help="The folder of the results; what it holds is not tried again.")],
    *,
    select: Annotated[str, typer.Option(help="Words that a name must hold, as in fence; -WORD: must not.")] = "",
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Mutants at once.")] = os.cpu_count() or 1,
    as_json: Json = False,
) -> None:
    """Remove load-bearing rules from the code, one at a time, and find the test that fails.

    Each mutant is tried in a copy of this tree, and never here. Exit codes: 0 each was caught, 1 some were not; their
    names follow.
    """
    from tests.lab.campaign.mutants.listing import listed
    from tests.lab.campaign.mutants.running import ControlError, run, selected
    from tests.lab.results import OtherResultsError

    out = Output(as_json=as_json)
    try:
        chosen = selected(listed(), select)
        with Counting(out.talk, "trying mutants", unit="mutants") as counting:
            found = run(folder, chosen, jobs=jobs, progress=counting.show)
    except OtherResultsError as error:
        raise Problem(str(error), todo="give another folder, or the same commit and machine") from error
    except ControlError as error:
        raise Problem(str(error), todo="make the tests pass first: scripts/test") from error
    except ValueError as error:
        raise Problem(str(error), todo="give words as in fence, or correct tests/lab/campaign/mutants") from error
    table = columns("mutant", "guard", "caught by")
    for one in found:
        table.add_row(one.name, one.guard, Text(one.by or one.outcome))  # a test's parameters are no markup
    left = [one for one in found if one.outcome != "caught"]
    out.show(View([one.model_dump(mode="json") for one in found], (table,)))
    for one in left:
        out.remark(f"{one.outcome}: {one.name}{f' ({one.error})' if one.error else ''}")
    if left:
        raise typer.Exit(1)


def _table(found: tuple[Count, ...]) -> Table:
    kinds = [name for name in found[0].broken if any(one.broken[name] for one in found)]
    table = columns(
        "tier",
        "subject",
        "guard",
        "cases",
        "exposed",
        "broken",
        "95 % bound",
        *(kind.replace("_", " ") for kind in kinds),
    )
    for one in found:
        table.add_row(
            one.tier,
            one.subject,
            "SafeWriter" if one.guarded else "none",
            str(one.cases),
            "" if one.exposed is None else str(one.exposed),
            str(one.broken_cases),
            "" if one.upper_bound is None else f"{one.upper_bound:.2%}",
            *(str(one.broken[kind]) for kind in kinds),
        )
    return table
