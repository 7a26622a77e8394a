"""The record of one lock: holder, queue and each job's progress. One document, changed by compare-and-swap only.

A record is never deleted: its token must only grow, and its writes must stay until a holder has settled them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from safewriter.bounds import checked, short
from safewriter.coordination.configuration import Configuration, Edge, FirstRun, Mode
from safewriter.entropy import unique_id
from safewriter.errors import SettingError, UnknownVersionError, UnreadableCheckpointError
from safewriter.objects.location import Location
from safewriter.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sized

__all__ = [
    "HISTORY_MAX",
    "JOBS_MAX",
    "QUEUE_MAX",
    "RECORD_MAX_BYTES",
    "RUNS_MAX",
    "UNSEEN_MAX_MS",
    "End",
    "Holder",
    "Job",
    "OpenWrite",
    "PastTurn",
    "Record",
    "Waiter",
]

SCHEMA_VERSION: Final = 1
HISTORY_MAX: Final = 100
RUNS_MAX: Final = 50
JOBS_MAX: Final = 50
"""With `RUNS_MAX`, `HISTORY_MAX` and `QUEUE_MAX` the record fits into an item of DynamoDB, 400 KB."""
QUEUE_MAX: Final = 200
RECORD_MAX_BYTES: Final = 8 << 20
"""The most that a record may have: some 40,000 guarded writes of one turn."""
_VALUES_MAX: Final = 500_000
_KNOWN_MAX: Final = 1024
"""Parts of records that are not checked again: from one change to the next nearly all stay."""
UNSEEN_MAX_MS: Final = 90 * 86_400_000
"""A job that has asked for no turn for this long leaves the record, by the clock of a job that asks."""


class End(StrEnum):
    """How a turn ended."""

    COMPLETED = "completed"
    NOTHING = "nothing"
    """The job reported that it had nothing to do; for its successors the turn counts as completed."""
    FAILED = "failed"
    """The job gave the turn back without completing it."""
    EXPIRED = "expired"
    """The holder's lease ended, and another job took the lock over."""
    REPEATED = "repeated"
    """The run had completed a turn before, so this turn does not count: its event was delivered twice."""
    FORCED = "forced"
    """An operator ended it with `soal locks release --force`."""


@dataclass(frozen=True, slots=True)
class OpenWrite:
    """A guarded write that a holder has opened: its checkpoint bucket (`s3://bucket/prefix`), write key and epoch.

    `noted_ms`: when it was noted, by the holder's wall clock. Finished documents expire, so an old write has none.
    """

    checkpoints: str
    write_key: str
    epoch: int
    noted_ms: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a lock. `beat` grows with each renewal; `since_ms` is the holder's wall clock, for people only.

    `silent_s`: how long waiters that have left saw no renewal, one after the other. `repeats`: the run has completed a
    turn before, so this turn does not count.
    """

    job: str
    nonce: str
    token: int
    lease_s: float
    since_ms: int
    run: str = ""
    beat: int = 0
    writes: tuple[OpenWrite, ...] = ()
    silent_s: float = 0.0
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Waiter:
    """A job that waits for the lock, and polls every `poll_s` seconds; the lowest ticket comes first."""

    job: str
    nonce: str
    ticket: int
    since_ms: int
    poll_s: float


@dataclass(frozen=True, slots=True)
class Job:
    """A job's progress, and the order that it asked for last.

    `registered`: the token of its last turn that began; `completed`: the sequence number of its last completion;
    `left`: the turns that its predecessor's completions have given it, and that it has not completed yet.
    """

    predecessor: str | None = None
    mode: Mode = Mode.COMPLETED
    edge: Edge = Edge.HARD
    lag: int = 1
    first_run: FirstRun = FirstRun.WAIT
    registered: int = 0
    completed: int = 0
    is_done: bool = True
    """Whether its last turn that began has completed."""
    left: int = 0
    runs: tuple[str, ...] = ()
    """The last runs of a handler that completed a turn: a second delivery of one of them does not count."""
    seen_ms: int = field(default=0, compare=False)
    """When it asked for a turn last, by its wall clock; 0 in a record that older code wrote."""


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A turn that has ended. The times are those of the writers' wall clocks, for people only."""

    job: str
    token: int
    since_ms: int
    until_ms: int
    end: End
    run: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """The state of one lock. `token` is the last one granted; `completions` counts completed turns."""

    lock: str
    token: int = 0
    tickets: int = 0
    completions: int = 0
    holder: Holder | None = None
    queue: tuple[Waiter, ...] = ()
    unsettled: tuple[OpenWrite, ...] = ()
    """Writes of holders that lost the lock; the next holder settles them before its turn begins."""
    jobs: Mapping[str, Job] = field(default_factory=dict)
    history: tuple[PastTurn, ...] = ()
    servers: tuple[str, ...] = ()
    """The last servers whose conditional writes were probed for this lock, by their endpoints."""

    def job(self, name: str) -> Job:
        """Return a job's progress; an unknown job starts at zero."""
        return self.jobs.get(name, Job())

    def ordered(self, configuration: Configuration) -> Job:
        """Return a job with the order that its configuration asks for.

        A job behind another predecessor than before, or new, has the turns of one completion, if there ever was one.
        """
        job, before = self.job(configuration.job), configuration.predecessor
        if configuration.job not in self.jobs or job.predecessor != before:
            has_completed = before is not None and self.job(before).completed > 0
            job = replace(job, left=configuration.lag if has_completed else 0)
        return replace(
            job,
            predecessor=before,
            mode=configuration.mode,
            edge=configuration.edge,
            lag=configuration.lag,
            first_run=configuration.first_run,
        )

    def configuration(self, name: str) -> Configuration:
        """Return the job's last configuration. Raises `SettingError` if no job can have one like it."""
        job = self.job(name)
        return Configuration(
            lock=self.lock,
            job=name,
            predecessor=job.predecessor,
            mode=job.mode,
            edge=job.edge,
            lag=job.lag,
            first_run=job.first_run,
        )

    def with_job(self, name: str, job: Job) -> Record:
        """Return the record with another state of one job."""
        return replace(self, jobs={**self.jobs, name: job})

    def is_held_by(self, nonce: str) -> bool:
        """Return whether this lease holds the lock."""
        return self.holder is not None and self.holder.nonce == nonce

    def encode(self) -> bytes:
        """Return the document. It has a unique id, so two changes never have equal bytes, nor equal ETags.

        Raises `UnreadableCheckpointError` if `decode` would refuse it, so that the stored record stays readable.
        """
        document = {"version": SCHEMA_VERSION, "change": unique_id(), **_fields(self)}
        body = json.dumps(document, default=_fields).encode()
        self.decode(body, f"the next record of {self.lock}, which is not written,")
        return body

    @classmethod
    def decode(cls, body: bytes, where: str) -> Record:
        """Read a document. Raises `UnreadableCheckpointError` if it is damaged or of another version.

        A record that no job can have written counts as damaged: its readers rely on its bounds and its orders.
        """
        try:
            fields = parsed(body, values_max=_VALUES_MAX) if len(body) <= RECORD_MAX_BYTES else None
        except ValueError:
            fields = None
        if not isinstance(fields, dict):
            raise UnreadableCheckpointError(f"{where} is not a lock's record; restore an earlier version of the object")
        if (version := fields.get("version")) != SCHEMA_VERSION:
            raise UnknownVersionError(f"{where} has version {short(version)}; this code knows {SCHEMA_VERSION}")
        try:
            return cls._of(fields)
        except (AttributeError, KeyError, OverflowError, SettingError, TypeError, ValueError) as error:
            raise UnreadableCheckpointError(f"{where} is damaged: {error!r}") from error

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Record:
        holder = fields["holder"]
        record = cls(
            lock=fields["lock"],
            token=fields["token"],
            tickets=fields["tickets"],
            completions=fields["completions"],
            holder=None if holder is None else checked(Holder(**{**holder, "writes": _writes(holder["writes"])})),
            queue=tuple(_waiter(**waiter) for waiter in fields["queue"]),
            unsettled=_writes(fields["unsettled"]),
            jobs={name: _job(name, **{**job, "runs": tuple(job["runs"])}) for name, job in fields["jobs"].items()},
            history=tuple(_past(**turn) for turn in fields["history"]),
            servers=tuple(map(str, fields["servers"])),
        )
        checked(record)
        _check_bound("queue", record.queue, QUEUE_MAX)
        _check_bound("jobs", record.jobs, JOBS_MAX)
        _check_bound("history", record.history, HISTORY_MAX)
        if record.jobs:  # the record of a probe has none, and a name that no job can give
            Configuration(lock=record.lock, job="any")
        if record.holder is not None:
            Configuration(lock="any", job=record.holder.job, lease_s=record.holder.lease_s)
        return record


def _check_bound(name: str, values: Sized, most: int) -> None:
    if len(values) > most:
        raise ValueError(f"{name} has {len(values)} entries, and {most} at most")


def _writes(writes: list[dict[str, Any]]) -> tuple[OpenWrite, ...]:
    for write in writes:
        Location.parse(write["checkpoints"])
    return tuple(checked(OpenWrite(**write)) for write in writes)


@lru_cache(_KNOWN_MAX, typed=True)
def _waiter(**fields: Any) -> Waiter:  # noqa: ANN401 - JSON
    waiter = checked(Waiter(**fields))
    Configuration(lock="any", job=waiter.job, poll_s=waiter.poll_s)
    return waiter


@lru_cache(_KNOWN_MAX, typed=True)
def _past(**fields: Any) -> PastTurn:  # noqa: ANN401 - JSON
    return checked(PastTurn(**{**fields, "end": End(fields["end"])}))


@lru_cache(_KNOWN_MAX, typed=True)
def _job(name: str, **fields: Any) -> Job:  # noqa: ANN401 - JSON
    kinds = {"mode": Mode(fields["mode"]), "edge": Edge(fields["edge"]), "first_run": FirstRun(fields["first_run"])}
    _check_bound("runs", fields["runs"], RUNS_MAX)
    job = checked(Job(**{**fields, **kinds, "runs": tuple(map(str, fields["runs"]))}))
    Record("any", jobs={name: job}).configuration(name)
    return job


def _fields(part: Any) -> dict[str, Any]:  # noqa: ANN401 - each dataclass of a record
    return {name: getattr(part, name) for name in part.__slots__}
