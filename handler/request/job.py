"""Turn a delivered event into a job: one run of one script, with the same run key on every retry.

`requested` is the only way from an event to a job: handler, command line and image use it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from handler.input_errors import InputError
from handler.request.continuation import unwrapped
from handler.request.event import parse_event
from handler.request.json_depth import check_nesting
from handler.spark_settings.tuning import digest_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from handler.request.continuation import Continuation
    from handler.request.event import Request
    from handler.settings import HandlerSettings
    from safewriter.coordination import Configuration
    from safewriter.objects import Location

__all__ = ["EventForm", "Job", "Requested", "TriggerEvent", "requested"]

# An argument of execve is at most 128 KiB on Linux.
_EVENT_ARGUMENT_MAX_BYTES: Final = 120_000


class EventForm(StrEnum):
    """How a script receives the event that triggered it."""

    ARGUMENT = "argument"
    """`--event JSON`: as in aws-samples/spark-on-aws-lambda, for functions that use its variables (SPARK_SCRIPT)."""
    FILE = "file"
    """`--event-file PATH`: for functions that use SOAL_ENTRY_POINT; of any size."""


@dataclass(frozen=True, slots=True)
class TriggerEvent:
    """The event that the script receives, as JSON text."""

    text: str
    form: EventForm


@dataclass(frozen=True, slots=True)
class Job:
    """A job to run. `run_key` names the run; all attempts of a run have the same fingerprint.

    `settings`: the hash of the event's own settings, the same in all attempts once a write is committed. `event`: the
    hash of the triggering event, the same in all attempts; empty for a job document.
    """

    entry_point: Location
    arguments: tuple[str, ...]
    conf: Mapping[str, str]
    py_files: tuple[Location, ...]
    run_key: str
    client_token: str | None
    name: str | None
    tags: Mapping[str, str]
    trigger_event: TriggerEvent | None
    settings: str
    event: str = ""
    coordination: Configuration | None = None
    accept_changed_script: bool = False
    """The event, or the function's owner, allows this attempt to continue the run with another script."""

    @classmethod
    def of(cls, request: Request, settings: HandlerSettings, request_id: str) -> Job:
        """Complete a request. The run key is the caller's, else the event's for this function, else Lambda's request
        id, which stays the same when Lambda retries an asynchronous invocation.
        """
        return cls(
            entry_point=request.entry_point,
            arguments=request.arguments,
            conf={**settings.conf, **request.conf},
            py_files=request.py_files,
            settings=digest_of(request.conf),
            run_key=request.client_token or request.event_key or request_id,
            client_token=request.client_token,
            name=request.name,
            tags=dict(request.tags),
            coordination=request.coordination,
            accept_changed_script=request.accept_changed_script or settings.accept_changed_script == "on",
            event="" if request.trigger is None else request.trigger.content,
            trigger_event=None if request.trigger is None else _trigger_event(request.trigger.event, settings),
        )

    @property
    def retry(self) -> str:
        """How to retry the run, for messages."""
        if self.client_token is not None:
            return f"invoking again with clientToken {self.client_token!r}"
        return "a retry by Lambda of this event (or, with a clientToken in the event, invoking it again)"

    @property
    def fingerprint(self) -> str:
        """The hash of everything that must never change under one run key: the script's location and the caller's
        arguments.

        It excludes the code, which may change if the owner allows it, and the settings, which may change until a write
        is committed: the run's record holds those, and writes are named without them. It also excludes the triggering
        event, which the record holds separately, since older records have none.
        """
        parts = [str(self.entry_point), list(self.arguments)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _trigger_event(event: Mapping[str, Any], settings: HandlerSettings) -> TriggerEvent:
    text = json.dumps(event, separators=(",", ":"))
    if settings.spark_script is None:
        return TriggerEvent(text, EventForm.FILE)
    if len(text.encode()) > _EVENT_ARGUMENT_MAX_BYTES:
        raise InputError(
            "event",
            f"has {len(text)} characters, too many for the argument --event; name the script by SOAL_ENTRY_POINT, which"
            " passes events as a file, instead of SPARK_SCRIPT",
        )
    return TriggerEvent(text, EventForm.ARGUMENT)


@dataclass(frozen=True, slots=True)
class Requested:
    """The job of an event. `event` is that of the run's first invocation, which this one may continue."""

    event: object
    continuation: Continuation | None
    job: Job
    warnings: tuple[str, ...] = ()


def requested(event: object, settings: HandlerSettings, request_id: str) -> Requested:
    """Return the job that a delivered event asks for. Raises `InputError` if the caller must change something."""
    check_nesting(event)
    first_event, continuation = unwrapped(event)
    request = parse_event(first_event, settings)
    if continuation is not None:
        request = replace(request, client_token=continuation.client_token)
    return Requested(first_event, continuation, Job.of(request, settings, request_id), request.warnings)
