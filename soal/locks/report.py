"""The report on a lock: a JSON document, and its view for people.

Its schema is published as `report.schema.json` beside this file; `python -m soal.locks.report` prints it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field
from rich.text import Text

from handler.json_document import schema_text
from safewriter.coordination.configuration import Edge, FirstRun, Mode
from safewriter.coordination.order import obstacle
from safewriter.coordination.record import End
from safewriter.coordination.transitions import goes_first
from soal.console.document import Part
from soal.console.view import View, columns, moment, number, styled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from safewriter.coordination.backend import Stored
    from safewriter.coordination.record import PastTurn, Record, Waiter

_COMPLETE = (End.COMPLETED, End.NOTHING)
_STATES = {True: "its session lives", False: "its session has ended"}


class WriteFound(Part):
    """A guarded write that a holder has opened."""

    checkpoints: str
    write_key: str
    epoch: int


class HolderFound(Part):
    """The job that has its turn now."""

    job: str
    run: str | None
    token: int
    since: datetime = Field(description="by the holder's own clock")
    lease_s: float = Field(description="without a renewal for this long it loses the lock to the next waiter")
    renewals: int = Field(description="how often it has renewed its lease")
    is_alive: bool | None = Field(description="whether its session lives; null if the lock service has no sessions")
    writes: tuple[WriteFound, ...] = Field(description="the guarded writes of its turn, ended or not")


class WaiterFound(Part):
    """A job in the queue."""

    job: str
    ticket: int = Field(description="the lowest ticket that the order lets run goes first")
    since: datetime = Field(description="by the waiter's own clock")
    why: str


class JobFound(Part):
    """A job's progress, and the order that it requested last."""

    job: str
    predecessor: str | None
    mode: Mode
    edge: Edge
    lag: int
    first_run: FirstRun
    token: int = Field(description="of its last turn that began; 0: none")
    completion: int = Field(description="the number of its last completion among those of all jobs; 0: none")
    completed_at: datetime | None = Field(description="null if the record no longer keeps that turn")
    left: int = Field(description="turns that completions of its predecessor gave it, and that it has not completed")
    obstacle: str | None = Field(description="why the order does not let it run now; null if it may")


class TurnFound(Part):
    """A turn that has ended. The times are by the clocks of the jobs that wrote them."""

    job: str
    run: str | None
    token: int
    since: datetime
    until: datetime
    end: End

    @classmethod
    def of_turn(cls, turn: PastTurn) -> Self:
        """Return the turn from a lock's record."""
        return cls(
            job=turn.job,
            run=turn.run or None,
            token=turn.token,
            since=_moment(turn.since_ms),
            until=_moment(turn.until_ms),
            end=turn.end,
        )


class LockReport(Part):
    """The content of a lock's record."""

    schema_version: Literal[1] = 1
    lock: str
    token: int = Field(description="the last one granted")
    holder: HolderFound | None = Field(description="null if the lock is free")
    waiters: tuple[WaiterFound, ...] = Field(description="in the order of their tickets")
    jobs: tuple[JobFound, ...]
    unsettled: tuple[WriteFound, ...] = Field(
        description="writes of holders that lost the lock; the next holder settles them before its turn begins"
    )
    turns: tuple[TurnFound, ...] = Field(description="the last ones, the newest first")

    @classmethod
    def of_lock(cls, stored: Stored, turns_max: int) -> Self:
        """Return the report on a record, with at most `turns_max` past turns."""
        record = stored.record
        newest = record.history[::-1]
        return cls(
            lock=record.lock,
            token=record.token,
            holder=_holder(stored),
            waiters=tuple(
                WaiterFound(
                    job=waiter.job,
                    ticket=waiter.ticket,
                    since=_moment(waiter.since_ms),
                    why=why_it_waits(record, waiter),
                )
                for waiter in sorted(record.queue, key=lambda waiter: waiter.ticket)
            ),
            jobs=tuple(_job(record, name) for name in sorted(record.jobs)),
            unsettled=tuple(map(WriteFound.of, record.unsettled)),
            turns=tuple(map(TurnFound.of_turn, newest[:turns_max])),
        )


def why_it_waits(record: Record, waiter: Waiter) -> str:
    """Return what blocks a waiter (holder, order, another waiter), or that it is next."""
    reasons = [] if record.holder is None else [f"{record.holder.job} holds it"]
    if against := obstacle(record, waiter.job, record.job(waiter.job)):
        return "; ".join([*reasons, against])
    if waiter_before := goes_first(record, record.configuration(waiter.job), waiter.nonce):
        reasons.append(f"{waiter_before.job} goes first")
    return "; ".join(reasons) or "it is next, and has not asked again yet"


def _holder(stored: Stored) -> HolderFound | None:
    holder = stored.record.holder
    if holder is None:
        return None
    return HolderFound(
        job=holder.job,
        run=holder.run or None,
        token=holder.token,
        since=_moment(holder.since_ms),
        lease_s=holder.lease_s,
        renewals=holder.beat,
        is_alive=stored.is_alive,
        writes=tuple(map(WriteFound.of, holder.writes)),
    )


def _job(record: Record, name: str) -> JobFound:
    job = record.job(name)
    ends = [past.until_ms for past in record.history if past.job == name and past.end in _COMPLETE]
    return JobFound(
        job=name,
        predecessor=job.predecessor,
        mode=job.mode,
        edge=job.edge,
        lag=job.lag,
        first_run=job.first_run,
        token=job.registered,
        completion=job.completed,
        completed_at=_moment(ends[-1]) if ends else None,
        left=job.left,
        obstacle=obstacle(record, name, job),
    )


def _moment(epoch_ms: int) -> datetime:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC)


def locks_view(reports: Sequence[LockReport]) -> View:
    """Show one row for each lock."""
    table = columns("lock", "holder", "token", "since", "waiting", "unsettled", right=("token", "waiting", "unsettled"))
    for lock in reports:
        holder, since = ("free", "") if lock.holder is None else (lock.holder.job, moment(lock.holder.since))
        table.add_row(lock.lock, holder, str(lock.token), since, number(len(lock.waiters)), number(len(lock.unsettled)))
    return View([report.document() for report in reports], (table if reports else "no lock",))


def lock_view(report: LockReport) -> View:
    """Show one lock: holder, queue, jobs, writes, last turns."""
    return View(report.document(), tuple(_lines(report)))


def turns_view(report: LockReport) -> View:
    """Show the turns that have ended."""
    turns = report.document()["turns"]
    return View(turns, (_turns(report.turns) if turns else f"{report.lock}: no turn has ended",))


def _lines(report: LockReport) -> Iterator[RenderableType]:
    yield Text(f"{report.lock}: {'free' if report.holder is None else _who(report.holder)}, token {report.token}")
    if report.holder is not None:
        yield Text(f"  {_renewals(report.holder)}")
        yield from _writes("opened", report.holder.writes)
    yield from _writes("unsettled", report.unsettled)
    if report.waiters:
        yield _queue(report.waiters)
    if report.jobs:
        yield _jobs_table(report.jobs)
    if report.turns:
        yield _turns(report.turns)


def _who(holder: HolderFound) -> str:
    run = f" (run {holder.run})" if holder.run else ""
    return f"{holder.job}{run} holds it since {moment(holder.since)}"


def _renewals(holder: HolderFound) -> str:
    state = "" if holder.is_alive is None else f"; {_STATES[holder.is_alive]}"
    return f"renewed {holder.renewals:,} times; lease {holder.lease_s:g} s{state}"


def _writes(title: str, writes: Iterable[WriteFound]) -> Iterator[Text]:
    for write in writes:
        yield Text(f"  {title}: write {write.write_key}, epoch {write.epoch}, in {write.checkpoints}", "yellow")


def _queue(waiters: Iterable[WaiterFound]) -> Table:
    table = columns("waits", "ticket", "since", "why", right=("ticket",))
    for waiter in waiters:
        table.add_row(waiter.job, str(waiter.ticket), moment(waiter.since), Text(waiter.why))
    return table


def _jobs_table(jobs: Iterable[JobFound]) -> Table:
    table = columns("job", "predecessor", "edge", "completed", "left", "may run", right=("left",))
    for job in jobs:
        completed = "never" if not job.completion else f"#{job.completion}"
        at = "" if job.completed_at is None else f" {moment(job.completed_at)}"
        left = str(job.left) if job.predecessor and job.mode == "completed" and job.edge != "soft" else ""
        table.add_row(job.job, job.predecessor or "", _edge(job), completed + at, left, Text(job.obstacle or "yes"))
    return table


def _edge(job: JobFound) -> str:
    if job.predecessor is None:
        return ""
    if job.mode == "strict":
        return "strict"
    return f"{job.edge} {job.lag}" if job.edge == "lagged" else str(job.edge)


def _turns(turns: Iterable[TurnFound]) -> Table:
    table = columns("turn", "job", "run", "since", "until", "end", right=("turn",))
    for turn in turns:
        row = (str(turn.token), turn.job, turn.run or "", moment(turn.since), moment(turn.until), styled(turn.end))
        table.add_row(*row)
    return table


if __name__ == "__main__":
    print(schema_text(LockReport), end="")
