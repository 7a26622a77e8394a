"""Turn an event into a job that this machine can run. Nothing has begun yet, so an error here changes nothing."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from handler.outcome.continuation import unwrapped
from handler.request.event import parse_event
from handler.request.job import Job
from handler.request.json_depth import check_nesting
from handler.sandbox.sandbox import forbids_execution
from handler.settings import read_settings
from handler.spark.command import check
from handler.spark.machine import this_machine
from handler.stages.progress import Configured, Prepared, Requested
from safewriter.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from handler.services import Services
    from handler.stages.progress import Progress

__all__ = ["prepare"]


def prepare(progress: Progress, event: object, environment: Mapping[str, str], services: Services) -> None:
    """Set `configured`, `requested` and `prepared`. Raises `InputError` if the caller must change something."""
    invocation = progress.invocation
    settings = read_settings(environment)
    progress.configured = Configured(settings, Schedule.of(invocation.deadline, settings.guard.warn_before_ms))
    check_nesting(event)
    first_event, continuation = unwrapped(event)
    request = parse_event(first_event, settings)
    if continuation is not None:
        request = replace(request, client_token=continuation.client_token)
    job = Job.of(request, settings, invocation.request_id)
    machine = this_machine(invocation.memory_mb)
    progress.requested = Requested(first_event, continuation, job)
    check(job, settings, machine)
    secrets = services.read_secrets(settings.secrets)
    redactor = progress.first_redactor.knowing_secrets(secrets.values.values()).knowing(job.arguments)
    progress.prepared = Prepared(machine, secrets, redactor.knowing_settings(job.conf))
    os.environ.update(secrets.of_catalogs)  # this process settles the job's open writes with them
    progress.warn(*request.warnings)
    if forbids_execution(settings.tmp):
        progress.warn(
            f"{settings.tmp} is mounted noexec, so Java cannot load the native libraries that it unpacks there (snappy,"
            " zstd, lz4)"
        )
