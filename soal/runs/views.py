"""The views of `soal runs`: runs, writes and their changes."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.text import Text

from safewriter.record.document import Status
from soal.console.document import document_of
from soal.console.fitting import Column, FittingTable
from soal.console.view import View, columns, moment, number, styled
from soal.runs.cost import gb_seconds, lambda_price

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from soal.runs.cost import Attempt, Costs
    from soal.runs.history import Application
    from soal.runs.run import RunView, WriteView
    from soal.runs.watching import Event

_LINES_MAX = 12
_WHY_MAX = 160
_SCRIPT_LEAST = 16
_WHY_LEAST = 20
_YEAR, _SECONDS = len("2026-"), len(":59Z")
_IF_ANY = ("script", "why")
_FINE = ("SUCCESS", "RUNNING")
_LIVES = {"alive": "green", "dead": "bold red"}


def runs_view(runs: Sequence[RunView]) -> View:
    """Show one row for each run."""
    return View(document_of(runs), (_runs(runs) if runs else "no run",))


def run_view(run: RunView, last: Attempt | None = None, *, is_whole: bool = True) -> View:
    """Show a run with its writes. `last`: the result of its last attempt, by which its price is known. `is_whole`: it
    has no other writes.
    """
    writes = (_writes(run.writes),) if run.writes else ("no guarded write",) if is_whole else ()
    execution = "" if run.execution is None else f"; durable execution {run.execution}"
    source = Text(f"script {run.entry_point}; result at {run.result_uri}{execution}", style="dim")
    reason = () if run.reason is None else (_beginning(run.reason),)
    bill = () if last is None else (_bill(last),)
    parts = (_runs((run,), is_list=False), *reason, *writes, *bill, *(() if run.entry_point is None else (source,)))
    return View(document_of(run), parts)


def costs_view(costs: Costs) -> View:
    """Show one row for each job, and the same time's price elsewhere."""
    right = ("runs", "attempts", "cold", "seconds", "GB-seconds", "Lambda $", "Glue $", "EMR Serverless $")
    table = columns("job", *right, right=right)
    for job in costs.jobs:
        counts = map(number, (job.runs, job.attempts, job.cold_starts))
        prices = (f"{price:,.4f}" for price in (job.price, job.glue, job.emr_serverless))
        table.add_row(Text(job.job or "(no name)"), *counts, f"{job.seconds:,.1f}", f"{job.gb_seconds:,.1f}", *prices)
    terms = Text(
        f"since {costs.since}, prices of {costs.architecture} in {costs.prices_of}; Glue with 2 DPUs and EMR Serverless"
        " with 2 workers for the same time, at least a minute. Not in it: killed attempts, starts of cold sandboxes,"
        " /tmp beyond 512 MB, S3, logs",
        style="dim",
    )
    return View(document_of(costs), (table if costs.jobs else "no result", terms))


def _bill(last: Attempt) -> Text:
    told = f"the last attempt took {last.timings.total_ms / 1000:,.1f} s of {last.memory.limit_mb:,} MB"
    return Text(f"{told}: {gb_seconds(last):,.1f} GB-seconds, ${lambda_price([last], 'x86_64'):.4f}", style="dim")


def applications_view(applications: Sequence[Application]) -> View:
    """Show one row for each Spark application of a run, with its page of the history server, and the REST API's."""
    table = columns("attempt", "application", "ended", "page", right=("attempt",))
    for one in applications:
        ended = Text("by Spark") if one.is_whole else Text("killed: only events until then", style="yellow")
        table.add_row(number(one.attempt), Text(one.application), ended, Text(one.url))
    if not applications:
        return View([], ("no application: Spark never started",))
    apis = dict.fromkeys(one.api.rpartition("/")[0] for one in applications)
    return View(document_of(applications), (table, *(Text(f"Spark's REST API: {api}") for api in apis)))


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


def _runs(runs: Sequence[RunView], *, is_list: bool = True) -> FittingTable:
    """Return a row for each run. A list has the script and the reason, which the page of one run has below."""
    reasons = [_life(run.life, run.why) if run.life is not None or not is_list else Text(_why(run)) for run in runs]
    scripts = [Text((run.entry_point or "").rpartition("/")[2]) for run in runs]
    began = [_time(run.started_ms) for run in runs]
    shown = [
        Column("run", [Text(run.run_key) for run in runs]),
        Column("script", scripts, cut_to=_SCRIPT_LEAST, rank=1),
        Column("state", [styled(run.state or "-") for run in runs]),
        Column("attempt", [Text(number(run.attempt)) for run in runs], rank=6, is_number=True),
        Column("began, UTC", [Text(time[_YEAR:-_SECONDS] if is_list else time) for time in began], rank=2),
        Column("took", [Text(_took(run)) for run in runs], rank=5, is_number=True),
        Column("writes", [_verdicts(run) for run in runs], rank=7),
        Column("rows", [Text(number(_committed_rows(run))) for run in runs], rank=4, is_number=True),
        Column("why", reasons, cut_to=_WHY_LEAST, rank=3),
    ]
    left_out = {column.name for column in shown if not is_list and column.name == "script"}
    left_out |= {column.name for column in shown if column.name in _IF_ANY and not any(column.cells)}
    return FittingTable([column for column in shown if column.name not in left_out])


def _took(run: RunView) -> str:
    return "" if run.ended_ms is None else f"{(run.ended_ms - run.started_ms) / 1000:,.1f} s"


def _verdicts(run: RunView) -> Text:
    counts = Counter(write.status for write in run.writes)
    return Text(", ").join(Text.assemble(f"{count} ", styled(status)) for status, count in sorted(counts.items()))


def _committed_rows(run: RunView) -> int | None:
    """Return the rows of a run's committed writes; None if none of them tells."""
    rows = [write.rows for write in run.writes if write.status == Status.COMMITTED and write.rows is not None]
    return sum(rows) if rows else None


def _why(run: RunView) -> str:
    """Return the start of the reason for which a run has ended otherwise than well."""
    if run.state in _FINE or not run.reason:
        return ""
    line = " ".join(run.reason.split())
    return line if len(line) <= _WHY_MAX else f"{line[:_WHY_MAX].rpartition(' ')[0]} …"


def _writes(writes: Sequence[WriteView]) -> Table:
    numbers = ("version", "rows", "attempts")
    table = columns("write", "step", "verdict", *numbers, "live or dead", "reason", right=numbers)
    for write in writes:
        table.add_row(
            Text.assemble(write.table, "\n", (write.write_key, "dim")),
            Text(write.step or ""),
            styled(write.status),
            *map(number, (write.version, write.rows, write.attempts)),
            _life(write.life, write.why),
            Text(_outcome(write)),
        )
    return table


def _outcome(write: WriteView) -> str:
    if write.incomplete is not None:
        return f"not whole: {write.incomplete}"
    return write.undo_refused or write.reason or ""


def _life(life: str | None, why: str | None) -> Text:
    return Text("") if life is None else Text.assemble((life, _LIVES[life]), f": {why}")


def _time(at_ms: int) -> str:
    return moment(datetime.fromtimestamp(at_ms / 1000, UTC))
