"""The outcome of an attempt: its state, and why it is not SUCCESS."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Fault", "Outcome", "State"]


class State(StrEnum):
    """The state of an attempt; the words of EMR Serverless where it has one."""

    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    INCOMPLETE = "INCOMPLETE"
    CANCELLED = "CANCELLED"
    UNKNOWN = "UNKNOWN"
    SKIPPED = "SKIPPED"
    """The order of the jobs did not let this one run, its owner says to skip the turn then, and no attempt of the run
    has begun without success; or the event asks for no job (S3's test of a notification).
    """


@dataclass(frozen=True, slots=True)
class Fault:
    """An error. `usage`: the caller must change something; `field` names it if it is in the event or the settings."""

    type: str
    message: str
    field: str | None = None
    retryable: bool = False
    usage: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on an attempt. `exit_code` and `signal` are the job's; both are None if it was not started."""

    state: State
    details: str
    fault: Fault | None
    exit_code: int | None = None
    signal: int | None = None
