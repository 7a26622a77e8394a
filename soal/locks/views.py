"""Locks, as `soal locks` shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from soal.console.view import View, columns, moment, number, styled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from soal.locks.report import HolderFound, JobFound, LockReport, TurnFound, WaiterFound, WriteFound

__all__ = ["lock_view", "locks_view", "turns_view"]

_STATES = {True: "its session lives", False: "its session has ended"}


def locks_view(reports: Sequence[LockReport]) -> View:
    """Show one row for each lock."""
    table = columns("lock", "holder", "token", "since", "waiting", "unsettled", right=("token", "waiting", "unsettled"))
    for one in reports:
        holder, since = ("free", "") if one.holder is None else (one.holder.job, moment(one.holder.since))
        table.add_row(one.lock, holder, str(one.token), since, number(len(one.waiters)), number(len(one.unsettled)))
    return View([one.document() for one in reports], (table if reports else "no lock",))


def lock_view(report: LockReport) -> View:
    """Show one lock: holder, queue, jobs, writes, last turns."""
    return View(report.document(), tuple(_lines(report)))


def turns_view(report: LockReport) -> View:
    """Show the turns that have ended."""
    turns = report.document()["turns"]
    return View(turns, (_turns(report.turns) if turns else f"{report.lock}: no turn has ended",))


def _lines(report: LockReport) -> Iterator[RenderableType]:
    yield Text(f"{report.lock}: {'free' if report.holder is None else _held(report.holder)}, token {report.token}")
    if report.holder is not None:
        yield Text(f"  {_renewals(report.holder)}")
        yield from _writes("opened", report.holder.writes)
    yield from _writes("unsettled", report.unsettled)
    if report.waiters:
        yield _queue(report.waiters)
    if report.jobs:
        yield _jobs(report.jobs)
    if report.turns:
        yield _turns(report.turns)


def _held(holder: HolderFound) -> str:
    run = f" (run {holder.run})" if holder.run else ""
    return f"{holder.job}{run} holds it since {moment(holder.since)}"


def _renewals(holder: HolderFound) -> str:
    state = "" if holder.is_alive is None else f"; {_STATES[holder.is_alive]}"
    return f"renewed {holder.renewals:,} times; lease {holder.lease_s:g} s{state}"


def _writes(what: str, writes: Iterable[WriteFound]) -> Iterator[Text]:
    for write in writes:
        yield Text(f"  {what}: write {write.write_key}, epoch {write.epoch}, in {write.checkpoints}", "yellow")


def _queue(waiters: Iterable[WaiterFound]) -> Table:
    table = columns("waits", "ticket", "since", "why", right=("ticket",))
    for one in waiters:
        table.add_row(one.job, str(one.ticket), moment(one.since), Text(one.why))
    return table


def _jobs(jobs: Iterable[JobFound]) -> Table:
    table = columns("job", "predecessor", "edge", "completed", "may run")
    for one in jobs:
        completed = "never" if not one.completion else f"#{one.completion}"
        at = "" if one.completed_at is None else f" {moment(one.completed_at)}"
        table.add_row(one.job, one.predecessor or "", _edge(one), completed + at, Text(one.obstacle or "yes"))
    return table


def _edge(job: JobFound) -> str:
    if job.predecessor is None:
        return ""
    if job.mode == "strict":
        return "strict"
    return f"{job.edge} {job.lag}" if job.edge == "lagged" else str(job.edge)


def _turns(turns: Iterable[TurnFound]) -> Table:
    table = columns("turn", "job", "run", "since", "until", "end", right=("turn",))
    for one in turns:
        row = (str(one.token), one.job, one.run or "", moment(one.since), moment(one.until), styled(one.end))
        table.add_row(*row)
    return table
