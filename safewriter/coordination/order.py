"""The rules of order: may a job have its turn now? Pure functions of the record.

| row | mode      | edge         | state of the record                                           | may run |
|-----|-----------|--------------|---------------------------------------------------------------|---------|
| 1   | any       | none         | the job names no predecessor                                  | yes     |
| 2   | any       | any          | the job never completed, and `first.run=run`                  | yes     |
| 3   | completed | hard, lagged | the job has a turn left                                       | yes     |
| 4   | completed | hard, lagged | it has none left                                              | no      |
| 5   | completed | soft         | the predecessor waits for the lock and may run                | no      |
| 6   | completed | soft         | it does not wait, or may not run, or waits for this job, too  | yes     |
| 7   | strict    | hard         | the predecessor had the ring's last turn, and completed it    | yes     |
| 8   | strict    | hard         | the job itself had it, and did not complete it                | yes     |
| 9   | strict    | hard         | any other job of the ring had it, or nobody had a turn        | no      |

Each turn that the predecessor completes gives the job one turn, or `lag` turns if it is lagged. Each turn that the job
completes takes one. So a job that was down catches up with its predecessor. A job that is new, or names another
predecessor, has the turns of one completion if that predecessor has ever completed a turn; with `first.run=run` also if
it has not.

"Completed" includes a turn that the predecessor ended with "nothing to do". A turn that failed or expired completes
nothing: the job may redo it (rows 3 and 8), and its successors wait. In a ring of soft edges whose jobs all wait,
each waits for each other one, so only the tickets decide (row 6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.coordination.configuration import PREFIX, Configuration, Edge, FirstRun, Mode
from safewriter.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Collection

    from safewriter.coordination.record import Job, Record

__all__ = ["check_startable", "obstacle"]


def obstacle(record: Record, name: str, job: Job) -> str | None:
    """Return why the order does not let the job run now; None if it may run."""
    record = record.with_job(name, job)
    line = _soft_line(record, name)
    why = _own_obstacle(record, line[-1])
    if len(line) == 1:
        return why
    # Rows 5, 6: a job may run if the predecessor to which it defers may not. So every other job of the line may run.
    may_run = (why is None) == (len(line) % 2 == 1)
    return None if may_run else f"{job.predecessor} waits for its turn, and goes first"


def _soft_line(record: Record, name: str) -> list[str]:
    """Return the job, the waiting soft predecessor to which it defers, that one's predecessor, and so on.

    The line ends at a job that defers to none, or that closes a ring of such jobs.
    """
    waiting = {waiter.job for waiter in record.queue}
    line: dict[str, int] = {}
    at: str | None = name
    while at is not None and at not in line:
        line[at] = len(line)
        before = record.job(at).predecessor
        at = before if before in waiting and _is_soft(record.job(at)) else None
    return list(line) if at is None else list(line)[: line[at] + 1]


def _is_soft(job: Job) -> bool:
    return job.mode is Mode.COMPLETED and job.edge is Edge.SOFT and not _is_first(job)


def _own_obstacle(record: Record, name: str) -> str | None:
    """Return the obstacle of a job that defers to no other."""
    job = record.job(name)
    if job.predecessor is None or _is_first(job):  # rows 1, 2
        return None
    if job.mode is Mode.STRICT:
        return _strict(record, name, job)
    if job.edge is Edge.SOFT:  # row 6
        return None
    if job.left > 0:  # row 3
        return None
    return f"{name} waits for the next turn that {job.predecessor} completes"  # row 4


def _is_first(job: Job) -> bool:
    return job.first_run is FirstRun.RUN and job.completed == 0


def _strict(record: Record, name: str, job: Job) -> str | None:
    last = max(_ring(record, name), key=lambda member: record.job(member).registered)
    if record.job(last).registered == 0:
        return f"no job has had a turn yet, and {name} comes after {job.predecessor}"
    is_done = record.job(last).is_done
    if (last == job.predecessor and is_done) or (last == name and not is_done):  # rows 7, 8
        return None
    state = "" if is_done else " and did not complete it"
    return f"{last} had the last turn{state}, and {name} comes after {job.predecessor}"


def _ring(record: Record, name: str) -> Collection[str]:
    """Return the job and its predecessors, as far as the record knows them. Only their turns count in the ring."""
    ring: dict[str, None] = {}
    at: str | None = name
    while at is not None and at not in ring:
        ring[at] = None
        at = record.job(at).predecessor
    return ring


def check_startable(record: Record, configuration: Configuration) -> None:
    """Raise `SettingError` if the job closes a ring in which each job waits for another one's first turn."""
    jobs = {**record.jobs, configuration.job: record.ordered(configuration)}
    ring: list[str] = []
    name: str | None = configuration.job
    while name is not None and name in jobs and name not in ring:
        ring.append(name)
        if not _waits_from_the_start(jobs[name]):
            return
        name = jobs[name].predecessor
    if name == configuration.job:
        around = " after ".join([*ring, configuration.job])
        raise SettingError(
            f"{PREFIX}first.run", f"no job of the ring {around} may start; set it to run for the job that goes first"
        )


def _waits_from_the_start(job: Job) -> bool:
    return (
        job.predecessor is not None
        and job.completed == 0
        and job.first_run is FirstRun.WAIT
        and (job.mode is Mode.STRICT or job.edge is not Edge.SOFT)
    )
