"""The values that the stages of an invocation pass on, and its progress.

Each stage takes the whole value of the previous one: `Invocation`, `Prepared`, `Begun`, `Settled`. A stage may fail
anywhere, and the result still holds all facts known by then: each stage sets its facts in `Progress`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from handler.outcome.encodable import encodable
from handler.redaction.redact import Redactor

if TYPE_CHECKING:
    from handler.process.child import Ended
    from handler.process.log import JobLog
    from handler.request.job import Job, Requested
    from handler.runs.store import OpenRun, Runs
    from handler.runs.turn import JobTurn
    from handler.secrets import Secrets
    from handler.settings import HandlerSettings
    from handler.spark.machine import Machine
    from safewriter.deadline import Deadline
    from safewriter.record.journal import Entry
    from safewriter.schedule import Schedule
    from safewriter.settle.supervisor import WriteReport

__all__ = ["Begun", "Invocation", "Prepared", "Progress", "Settled"]


@dataclass(frozen=True, slots=True)
class Invocation:
    """Lambda's facts about an invocation. `function`: the name or ARN by which the function was invoked. `execution`:
    the ARN of the durable execution to which this attempt belongs.
    """

    deadline: Deadline
    request_id: str
    run_id: str
    memory_mb: int
    cold_start: bool
    function: str = ""
    execution: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A job that this machine can run. `schedule`: the instants derived from the settings and the deadline. `redactor`
    knows the secrets, the job's arguments and its settings.
    """

    settings: HandlerSettings
    schedule: Schedule
    requested: Requested
    machine: Machine
    secrets: Secrets
    redactor: Redactor

    @property
    def job(self) -> Job:
        """The job of the event."""
        return self.requested.job


@dataclass(frozen=True, slots=True)
class Begun:
    """A prepared job, and its attempt, whose record says RUNNING."""

    prepared: Prepared
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
    """The progress of an invocation. `started`: the script was allowed to begin. `job_log`: the job's output so far.
    `redactor`: the current one, which knows the most secrets; the first one knows only the function's variables.
    """

    invocation: Invocation
    redactor: Redactor = field(default_factory=Redactor)
    settings: HandlerSettings | None = None
    job: Job | None = None
    begun: Begun | None = None
    turn: JobTurn | None = None
    download_ms: int | None = None
    job_log: JobLog | None = None
    started: bool = False
    settled: Settled | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def writes(self) -> tuple[WriteReport, ...] | None:
        """The verdicts; None before they exist."""
        return None if self.settled is None else self.settled.writes

    def masked(self, text: str) -> str:
        """Mask secrets in a text and make it encodable. All texts of results, records and the log
        (`observability.mask_lines`) pass through here, except run keys and object locations, which are used to look
        things up.
        """
        return encodable(self.redactor(text))

    def warn(self, *warnings: str) -> None:
        """Add sentences to the result's warnings, each once."""
        self.warnings.extend(warning for warning in warnings if warning not in self.warnings)
