"""The progress of one invocation: the values that its stages pass on.

A stage may fail anywhere, and the result still says all that is known by then. So `Progress` has a place for each
value; the stage that makes the value puts it there once, and nothing changes it afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from handler.redaction.redact import Redactor

if TYPE_CHECKING:
    from handler.outcome.continuation import Continuation
    from handler.process.child import Ended
    from handler.process.log import JobLog
    from handler.request.job import Job
    from handler.runs.records import OpenRun, Runs
    from handler.secrets import Secrets
    from handler.settings import HandlerSettings
    from handler.spark.machine import Machine
    from safewriter.deadline import Deadline
    from safewriter.record.journal import Entry
    from safewriter.schedule import Schedule
    from safewriter.settle.supervisor import WriteReport

__all__ = ["Begun", "Configured", "Invocation", "Prepared", "Progress", "Requested", "Settled"]


@dataclass(frozen=True, slots=True)
class Invocation:
    """Lambda's facts about it. `function`: the function's own name or ARN, as it was invoked. `execution`: the ARN of
    the durable execution whose attempt this is.
    """

    deadline: Deadline
    request_id: str
    run_id: str
    memory_mb: int
    cold_start: bool
    function: str = ""
    execution: str | None = None


@dataclass(frozen=True, slots=True)
class Configured:
    """The function's settings, and the instants that follow from them and the deadline."""

    settings: HandlerSettings
    schedule: Schedule


@dataclass(frozen=True, slots=True)
class Requested:
    """The job of an event. `event` is the first invocation's, of which this one may be a `continuation`."""

    event: object
    continuation: Continuation | None
    job: Job


@dataclass(frozen=True, slots=True)
class Prepared:
    """The means of the job. The redactor knows the secrets, the job's arguments and its settings."""

    machine: Machine
    secrets: Secrets
    redactor: Redactor


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt whose record says RUNNING."""

    runs: Runs
    run: OpenRun


@dataclass(frozen=True, slots=True)
class Settled:
    """A job that has ended, and the verdicts on its writes; `writes` is None if they could not be settled. `ended` is
    None if the handler failed before the job's end. `settle_ms`: how long settling took.
    """

    ended: Ended | None
    journal: tuple[Entry, ...]
    writes: tuple[WriteReport, ...] | None
    problem: str
    settle_ms: int


@dataclass(slots=True)
class Progress:
    """One invocation so far. `started`: the script was allowed to begin. `job_log`: the job's output up to now."""

    invocation: Invocation
    first_redactor: Redactor = field(default_factory=Redactor)
    configured: Configured | None = None
    requested: Requested | None = None
    prepared: Prepared | None = None
    begun: Begun | None = None
    download_ms: int | None = None
    job_log: JobLog | None = None
    started: bool = False
    settled: Settled | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def redactor(self) -> Redactor:
        """The redactor that knows most: the first one knows the function's variables alone."""
        return self.first_redactor if self.prepared is None else self.prepared.redactor

    @property
    def writes(self) -> tuple[WriteReport, ...] | None:
        """The verdicts; None if there are none yet."""
        return None if self.settled is None else self.settled.writes

    def warn(self, *warnings: str) -> None:
        """Add sentences that the result will hold; each once."""
        self.warnings.extend(one for one in warnings if one not in self.warnings)
