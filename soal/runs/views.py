"""The views of `soal runs`: runs, writes and their changes."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.text import Text

from soal.console.document import document_of
from soal.console.view import View, columns, moment, number, styled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from soal.runs.ledger import RunView, WriteView
    from soal.runs.watching import Event

_LINES_MAX = 12
_LIVES = {"alive": "green", "dead": "bold red"}


def runs_view(runs: Sequence[RunView]) -> View:
    """Show one row for each run."""
    return View(document_of(runs), (_runs(runs) if runs else "no run",))


def run_view(run: RunView) -> View:
    """Show a run with its writes."""
    writes = _writes(run.writes) if run.writes else "no guarded write"
    execution = "" if run.execution is None else f"; durable execution {run.execution}"
    source = Text(f"script {run.entry_point}; result at {run.result_uri}{execution}", style="dim")
    reason = () if run.reason is None else (_beginning(run.reason),)
    return View(document_of(run), (_runs((run,)), *reason, writes, *(() if run.entry_point is None else (source,))))


def event_view(event: Event) -> View:
    """Show one change on one line."""
    table = "" if event.table is None else f"  {event.table}{f' ({event.step})' if event.step else ''}"
    reason = next(iter((event.undo_refused or event.reason or "").splitlines()), "")
    line = Text.assemble(
        (_time(event.at_ms), "dim"),
        "  ",
        styled(event.state),
        f"  {event.kind} {event.run_key}, attempt {event.attempt}{table}",
        f": {reason}" if reason else "",
    )
    return View(document_of(event), (line,))


def _beginning(reason: str) -> Text:
    """Return the start of a reason. A Spark error may have a hundred lines; the result has all of them."""
    lines = reason.splitlines()
    return Text(
        "\n".join([*lines[:_LINES_MAX], *(["… (all of it is in the result)"] if len(lines) > _LINES_MAX else [])])
    )


def _runs(runs: Sequence[RunView]) -> Table:
    table = columns("run", "state", "live or dead", "attempt", "began", "writes", right=("attempt",))
    for run in runs:
        counts = Counter(write.status for write in run.writes)
        writes = Text(", ").join(Text.assemble(f"{count} ", styled(status)) for status, count in sorted(counts.items()))
        table.add_row(
            Text(run.run_key),
            styled(run.state or "-"),
            _life(run.life, run.why),
            number(run.attempt),
            _time(run.started_ms),
            writes,
        )
    return table


def _writes(writes: Sequence[WriteView]) -> Table:
    numbers = ("version", "rows", "attempts")
    table = columns("write", "step", "verdict", *numbers, "live or dead", "reason", right=numbers)
    for write in writes:
        table.add_row(
            Text(write.table),
            Text(write.step or ""),
            styled(write.status),
            *map(number, (write.version, write.rows, write.attempts)),
            _life(write.life, write.why),
            Text(write.undo_refused or write.reason or ""),
        )
    return table


def _life(life: str | None, why: str | None) -> Text:
    return Text("") if life is None else Text.assemble((life, _LIVES[life]), f": {why}")


def _time(at_ms: int) -> str:
    return moment(datetime.fromtimestamp(at_ms / 1000, UTC))
