"""The changes of a lock's record. Pure functions; the caller writes the result by compare-and-swap.

A new lease raises the token. Only the holder's own release, its expiry or an operator ends a lease. The writes of a
holder that lost the lock become `unsettled`; they leave that list only when a later holder has settled them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from safewriter.coordination.configuration import PREFIX, FirstRun
from safewriter.coordination.order import obstacle
from safewriter.coordination.record import (
    HISTORY_MAX,
    JOBS_MAX,
    RUNS_MAX,
    UNSEEN_MAX_MS,
    End,
    Holder,
    PastTurn,
    Waiter,
)
from safewriter.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from safewriter.coordination.configuration import Configuration
    from safewriter.coordination.record import OpenWrite, Record

__all__ = [
    "end",
    "forget_settled",
    "go_before",
    "goes_first",
    "grant",
    "has_completed",
    "join",
    "leave",
    "next_waiter",
    "noted",
    "open_write",
    "renew",
    "with_token",
]

_COMPLETING: Final = (End.COMPLETED, End.NOTHING)


def noted(record: Record, configuration: Configuration, now_ms: int) -> Record:
    """Note a job's order, and when it asked. Jobs that have not asked for `UNSEEN_MAX_MS` leave the record first.

    Raises `SettingError` if the record is full of other jobs.
    """
    record = _without_unseen(record, configuration.job, now_ms)
    if configuration.job not in record.jobs and len(record.jobs) >= JOBS_MAX:
        raise SettingError(
            f"{PREFIX}name",
            f"{configuration.job!r} is one too many: {record.lock} has {JOBS_MAX} jobs. Give a job the same name in"
            " all its runs; one that asks no more leaves the record after 90 days",
        )
    job = record.ordered(configuration)
    return record.with_job(configuration.job, replace(job, seen_ms=now_ms))


def _without_unseen(record: Record, asking: str, now_ms: int) -> Record:
    """Keep the jobs that asked recently, ask now, wait or hold the lock, and all predecessors of these."""
    jobs = {name: replace(job, seen_ms=job.seen_ms or now_ms) for name, job in record.jobs.items()}
    names = {name for name, job in jobs.items() if now_ms - job.seen_ms <= UNSEEN_MAX_MS}
    names |= {asking, *(waiter.job for waiter in record.queue)}
    names |= set() if record.holder is None else {record.holder.job}
    for name in tuple(names):
        before = record.job(name).predecessor
        while before is not None and before not in names:
            names.add(before)
            before = record.job(before).predecessor
    return replace(record, jobs={name: job for name, job in jobs.items() if name in names})


def join(record: Record, configuration: Configuration, nonce: str, now_ms: int) -> Record:
    """Add a job to the end of the queue, with the next ticket."""
    waiter = Waiter(configuration.job, nonce, record.tickets + 1, now_ms, configuration.poll_s)
    return replace(
        noted(record, configuration, now_ms), tickets=waiter.ticket, queue=(*leave(record, nonce).queue, waiter)
    )


def leave(record: Record, nonce: str) -> Record:
    """Remove a waiter from the queue."""
    return replace(record, queue=tuple(waiter for waiter in record.queue if waiter.nonce != nonce))


def goes_first(record: Record, configuration: Configuration, nonce: str) -> Waiter | None:
    """Return the waiter that takes the free lock before this job, if there is one.

    That is a waiter with a lower ticket, or a soft predecessor, if the order lets it run.
    """
    ticket = next((waiter.ticket for waiter in record.queue if waiter.nonce == nonce), record.tickets + 1)
    job = record.ordered(configuration)
    is_behind = configuration.defers and obstacle(record, configuration.job, job) is not None
    for waiter in sorted(record.queue, key=lambda waiter: waiter.ticket):
        is_before = waiter.ticket < ticket or (is_behind and waiter.job == configuration.predecessor)
        if is_before and waiter.nonce != nonce and _may_run(record, waiter):
            return waiter
    return None


def go_before(record: Record, nonce: str) -> list[Waiter]:
    """Return the waiters whose turns come before that of the waiter `nonce`, as far as the order lets all run now."""
    before: list[Waiter] = []
    for waiter in _able(record):
        if waiter.nonce == nonce:
            return before
        before.append(waiter)
    return []


def next_waiter(record: Record) -> Waiter | None:
    """Return the waiter that takes the free lock next, if no other job asks."""
    return next(_able(record), None)


def _able(record: Record) -> Iterator[Waiter]:
    """Yield the waiters that the order lets run now, by their tickets."""
    return (one for one in sorted(record.queue, key=lambda one: one.ticket) if _may_run(record, one))


def _may_run(record: Record, waiter: Waiter) -> bool:
    return obstacle(record, waiter.job, record.job(waiter.job)) is None


def grant(
    record: Record, configuration: Configuration, nonce: str, run: str, now_ms: int, *, repeats: bool = False
) -> Record:
    """Give the free lock to a job, and register its turn. `repeats`: the run has already completed a turn, so this one
    does not change the order.
    """
    if record.holder is not None:
        raise ValueError(f"{record.lock} is held by {record.holder.job}")
    holder = Holder(configuration.job, nonce, record.token + 1, configuration.lease_s, now_ms, run, repeats=repeats)
    granted = replace(leave(record, nonce), holder=holder)
    if not repeats:
        granted = noted(granted, configuration, now_ms)
        granted = granted.with_job(configuration.job, replace(granted.job(configuration.job), is_done=False))
    return with_token(granted, holder.token)


def has_completed(record: Record, job: str, run: str) -> bool:
    """Return whether the run is one of the last that completed a turn of the job."""
    return bool(run) and run in record.job(job).runs


def with_token(record: Record, token: int) -> Record:
    """Set the token of the present lease."""
    if record.holder is None:
        raise ValueError(f"{record.lock} is free")
    numbered = replace(record, token=token, holder=replace(record.holder, token=token))
    if record.holder.repeats:
        return numbered
    return numbered.with_job(record.holder.job, replace(record.job(record.holder.job), registered=token))


def renew(record: Record) -> Record:
    """Renew the holder's lease."""
    if record.holder is None:
        raise ValueError(f"{record.lock} is free")
    return replace(record, holder=replace(record.holder, beat=record.holder.beat + 1, silent_s=0.0))


def open_write(record: Record, write: OpenWrite) -> Record:
    """Note a write of the holder, so that a later holder can settle it. This also renews the lease."""
    if record.holder is None:
        raise ValueError(f"{record.lock} is free")
    writes = (*(other for other in record.holder.writes if other != write), write)
    return renew(replace(record, holder=replace(record.holder, writes=writes)))


def forget_settled(record: Record, settled: Collection[OpenWrite]) -> Record:
    """Remove settled writes of earlier holders. This also renews the present holder's lease."""
    return renew(replace(record, unsettled=tuple(write for write in record.unsettled if write not in settled)))


def end(record: Record, how: End, now_ms: int, decided: Collection[OpenWrite] = ()) -> Record:
    """End the present lease. A later holder must settle its writes that are not `decided`; a turn with such a write has
    not completed.
    """
    holder = record.holder
    if holder is None:
        raise ValueError(f"{record.lock} is free")
    open_writes = tuple(write for write in holder.writes if write not in decided)
    if open_writes and how in _COMPLETING:
        how = End.FAILED
    if holder.repeats and how in _COMPLETING:
        how = End.REPEATED
    past = PastTurn(holder.job, holder.token, holder.since_ms, now_ms, how, holder.run)
    ended = replace(
        record,
        holder=None,
        unsettled=(*record.unsettled, *(write for write in open_writes if write not in record.unsettled)),
        history=(*record.history, past)[-HISTORY_MAX:],
    )
    return _completed(ended, holder) if how in _COMPLETING else ended


def _completed(record: Record, holder: Holder) -> Record:
    name, number = holder.job, record.completions + 1
    job = record.job(name)
    is_first = job.first_run is FirstRun.RUN and job.completed == 0
    had = max(job.left, job.lag if is_first else 1)
    job = replace(job, completed=number, is_done=True, left=had - 1)
    if holder.run:
        job = replace(job, runs=(*(run for run in job.runs if run != holder.run), holder.run)[-RUNS_MAX:])
    jobs = {
        other: replace(one, left=one.left + one.lag) if one.predecessor == name else one
        for other, one in record.jobs.items()
    }
    return replace(record, completions=number, jobs={**jobs, name: job})
