"""`soal runs …`: the state of runs and their writes, from the checkpoint bucket."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from handler.outcome.state import State
from safewriter.deadline import epoch_ms
from safewriter.record.document import Status
from safewriter.record.liveness import is_over
from soal.console.problem import EXIT_FAILED, EXIT_TRY_AGAIN, Failure, Problem
from soal.options import RunKey
from soal.runs.cost import costs_of
from soal.runs.history import HistoryServer
from soal.runs.ledger import MAY_BE_OF_RUN, Ledger, remarks
from soal.runs.run import why_of
from soal.runs.views import applications_view, costs_view, event_view, run_view, runs_view
from soal.runs.watching import Watcher
from soal.s3_command import Call, s3_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handler.runs.record import RunRecord
    from soal.runs.cost import Attempt
    from soal.runs.run import RunView

_POLL_S: Final = 1.0
_ENDS: Final = ("SUCCESS", "SKIPPED", "CANCELLED")
"""The states after which no attempt follows."""

app = typer.Typer(no_args_is_help=True, help="The state of runs and their writes.")

_STATES: Final = sorted({"running", "alive", "dead", "undo_refused", *map(str.lower, (*State, *Status))})


def _known(states: list[str] | None) -> list[str]:
    words = [state.lower() for state in states or ()]
    for word in words:
        if word not in _STATES:
            raise typer.BadParameter(f"{word!r} is none of {', '.join(_STATES)}")
    return words


States = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        callback=_known,
        help="Only these: a run's state, a write's status, undo_refused, alive or dead. May be repeated.",
    ),
]


@app.callback()
def _runs() -> None:
    """The state of runs and their writes."""


@app.command("list")
@s3_command()
def show_all(
    call: Call,
    state: States = None,
    limit: Annotated[int, typer.Option(min=0, help="Show at most this many runs, newest first; 0 shows all.")] = 50,
) -> None:
    """List runs, newest first: state, why, how long, verdicts and rows. With --state it reads all runs."""
    listing = _ledger(call).runs(limit, frozenset(state or ()))
    call.out.show(runs_view(listing.runs))
    _name(call, listing.unread, "is damaged, or of a version that this soal does not know; it is left out")
    if not listing.is_whole:
        call.out.remark("older runs are not shown; --limit 0 shows all")


@app.command()
@s3_command()
def show(call: Call, run_key: RunKey) -> None:
    """Show one run with all its writes; exit code 1 if the run is unknown."""
    ledger = _ledger(call)
    run, unread = ledger.run(run_key)
    _show(call, run, unread, None if run is None else ledger.last_attempt(run))
    if run is None:
        raise _unknown(run_key, unread)


@app.command()
@s3_command()
def cost(
    call: Call,
    days: Annotated[float, typer.Option(min=0, help="Of the last days; results expire with their runs.")] = 30.0,
    architecture: Annotated[
        Literal["x86_64", "arm64"], typer.Option(help="The function's; a result does not tell.")
    ] = "x86_64",
) -> None:
    """Sum up what the attempts of each job cost, by their results, and what the same time costs on Glue and EMR
    Serverless.
    """
    since = datetime.now(UTC) - timedelta(days=days)
    attempts, unread = _ledger(call).attempts(since)
    call.out.show(costs_view(costs_of(attempts, unread, since=since, architecture=architecture)))
    _name(call, unread, "is no result that this soal can read; it is left out")


@app.command()
@s3_command()
def ui(
    call: Call,
    run_key: RunKey,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Of the loopback address; default: any free one.")] = 0,
) -> None:
    """Open Spark's history server on the event logs of a run, until Ctrl-C. It shows the attempts of a function that
    keeps them (context key event_logs).
    """
    server = HistoryServer.find(call.home, port)
    with server.on(call.checkpoints(), run_key) as served:
        call.out.show(applications_view(served.applications))
        _name(call, served.unread, "is no event log that Spark's history server can read; it is left out")
        call.out.remark("Ctrl-C ends the history server")
        with suppress(KeyboardInterrupt):
            served.process.wait()
            raise Failure("Spark's history server has ended", todo="start it again")


@app.command()
@s3_command()
def watch(
    call: Call,
    state: States = None,
    every_s: Annotated[float, typer.Option(min=0.1, help="Seconds between two reads.")] = 10.0,
    for_s: Annotated[float | None, typer.Option(min=0, help="End after this many seconds; default: never.")] = None,
    *,
    past: Annotated[bool, typer.Option("--past", help="Print the existing runs and writes first.")] = False,
) -> None:
    """Print a line whenever a run or a write changes its state; with --json, a JSON value on each line."""
    watcher = Watcher(_ledger(call))
    states = frozenset(state or ())
    for event in watcher.follow(past=past, every_s=every_s, for_s=for_s):
        if not states or event.state.lower() in states:
            call.out.stream(event_view(event))


@app.command()
@s3_command()
def cancel(
    call: Call,
    run_key: RunKey,
    reason: Annotated[str, typer.Option(help="Why; kept with the request.")] = "by hand",
    wait_s: Annotated[float, typer.Option(min=0, help="How long to wait for its end.")] = 60.0,
) -> None:
    """Cancel a run: its handler stops the job and settles its open writes. A durable execution makes no further
    attempt; if it is waiting, it ends as soon as the wait is over. A handler without a sign of life is asked, too.

    Exit codes: 0 cancelled, 1 it had ended before or ended otherwise, or its time is over, 75 it has not ended yet.
    """
    ledger = _ledger(call)
    stored = ledger.records.read(run_key)
    if stored is None:
        raise _unknown(run_key)
    record = stored.record
    if record.state in _ENDS or (record.state != "RUNNING" and record.execution is None):
        raise Failure(
            f"run {run_key!r} has ended as {record.state}",
            todo="there is nothing to cancel; see: soal runs show",
        )
    sighting = stored.sighting
    # A handler may live on after a missed beat; only its deadline and the grace tell that no process of it is left.
    if is_over(sighting.end_ms, sighting.now) and record.execution is None:
        raise Failure(
            f"the handler of run {run_key!r} is dead: {why_of(sighting)}; no process of the run is left to cancel",
            todo=f"settle its writes with: soal recover --run {run_key}",
        )
    ledger.records.request_cancel(record, reason)
    whom = f"attempt {record.attempt}" if record.execution is None else f"the durable execution {record.execution}"
    call.out.remark(f"asked the handler of {whom} to end run {run_key!r}")
    if record.state == "RUNNING" and sighting.is_dead:
        call.out.remark(
            f"attempt {record.attempt}: {why_of(sighting)}. If its handler lives, its next beat finds the request;"
            f" if not, settle the run's writes with: soal recover --run {run_key}"
        )
    state = _wait_for_end(ledger, run_key, record, wait_s)
    _show(call, *ledger.run(run_key))
    if state is None:
        call.out.remark("it has not ended yet; see: soal runs show")
        raise typer.Exit(EXIT_TRY_AGAIN)
    if state != "CANCELLED":
        raise typer.Exit(EXIT_FAILED)


def _wait_for_end(ledger: Ledger, run_key: str, cancelled: RunRecord, wait_s: float) -> str | None:
    """Wait until the attempt, or its durable execution, has ended; return the state, or None if it still runs."""
    until_s = time.monotonic() + wait_s
    while True:
        stored = ledger.records.read(run_key)
        is_same = stored is not None and (
            stored.record.run_id == cancelled.run_id
            if cancelled.execution is None
            else stored.record.execution == cancelled.execution
        )
        if stored is None or not is_same:
            return "REPLACED"
        if stored.record.state in _ENDS or (stored.record.state != "RUNNING" and cancelled.execution is None):
            return stored.record.state
        if time.monotonic() >= until_s:
            return None
        time.sleep(min(_POLL_S, wait_s))


def _ledger(call: Call) -> Ledger:
    return Ledger(call.checkpoints(), epoch_ms)


def _show(call: Call, run: RunView | None, unread: Sequence[str], last: Attempt | None = None) -> None:
    """Show a run, and name the documents that may hide more writes of it."""
    if run is not None:
        call.out.show(run_view(run, last, is_whole=not unread))
    _name(call, unread, MAY_BE_OF_RUN)


def _name(call: Call, unread: Sequence[str], what: str) -> None:
    for remark in remarks(unread, what):
        call.out.remark(remark)


def _unknown(run_key: str, unread: Sequence[str] = ()) -> Problem:
    if unread:
        return Failure(
            f"no record, document or marker that can be read is of run {run_key!r}",
            todo="restore an earlier version of what cannot be read; the bucket keeps it for some days",
        )
    return Failure(f"nothing is known of a run {run_key!r}", todo="see the run keys with: soal runs list")
