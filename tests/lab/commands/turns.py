"""`scripts/lab turns`: three streams on one table, without and with turns. Its modules are imported on call."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from soal.console.output import Output
from soal.console.problem import EXIT_FAILED, Failure, Problem
from soal.console.view import View, columns, number
from soal.options import Json

if TYPE_CHECKING:
    from tests.lab.turns.demo import Outcome

__all__ = ["turns"]


def turns(
    out: Annotated[Path, typer.Option("--out", help="A folder that is not there yet.")] = Path("locks-demo"),
    rounds: Annotated[int, typer.Option(min=2, max=30, help="Batches of each stream in each group.")] = 8,
    seed: Annotated[int, typer.Option(help="Of the generated input.")] = 1,
    *,
    as_json: Json = False,
) -> None:
    """Let three streams, each with a Spark driver of its own, write one Delta table: without and with turns.

    Writes a timeline (timeline.svg, timeline.png) and the events (events.jsonl). Takes minutes and 3 GB of memory. Exit
    code 1 if a figure is not as expected.
    """
    from tests.lab.pictures.plot import png, svg
    from tests.lab.turns.demo import demo as run
    from tests.lab.turns.picture import timeline

    output = Output(as_json=as_json)
    try:
        out.mkdir(parents=True)
    except FileExistsError as error:
        raise Problem(f"{out} is there already", todo="name a new folder with --out") from error
    try:
        outcome = run(out, seed=seed, rounds=rounds, says=output.remark)
    except RuntimeError as error:
        raise Failure(str(error), todo=f"look at the logs in {out}") from error
    drawn = timeline(outcome.events, outcome.verdicts)
    (out / "timeline.svg").write_text(svg(drawn), encoding="utf-8")
    (out / "timeline.png").write_bytes(png(drawn))
    output.show(_view(outcome))
    output.remark(f"{out}: timeline.svg, timeline.png, events.jsonl")
    if not outcome.is_as_it_must_be:
        raise typer.Exit(EXIT_FAILED)


def _view(outcome: Outcome) -> View:
    table = columns("", *(f"{group} turns" for group in outcome.verdicts), right=tuple(outcome.verdicts))
    documents = {group: asdict(verdict) for group, verdict in outcome.verdicts.items()}
    for name in next(iter(documents.values())):
        if name != "group":
            values = [document[name] for document in documents.values()]
            shown = [number(one) if type(one) is int else "yes" if one else "no" for one in values]
            table.add_row(name.replace("_", " "), *shown)
    return View(documents, (table,))
