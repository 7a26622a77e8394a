"""Turn an event into a job that this machine can run. An error here has no side effects."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from handler.input_errors import InputError
from handler.request.job import requested
from handler.sandbox.sandbox import forbids_execution
from handler.settings import read_settings
from handler.spark.command import check
from handler.spark.machine import this_machine
from handler.stages.progress import Prepared
from safewriter.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from handler.services import Services
    from handler.stages.progress import Progress

__all__ = ["prepare"]


def prepare(progress: Progress, event: object, environment: Mapping[str, str], services: Services) -> Prepared:
    """Return the job that the event asks for. Raises `InputError` if the caller must change something."""
    invocation = progress.invocation
    settings = progress.settings = read_settings(environment)
    request = requested(event, settings, invocation.request_id)
    job = progress.job = request.job
    machine = this_machine(invocation.memory_mb, is_managed=settings.is_managed)
    check(job, settings, machine)
    secrets = services.read_secrets(settings.secrets)
    redactor = progress.redactor.knowing_secrets(secrets.values.values()).knowing(job.arguments)
    progress.redactor = redactor.knowing_settings(job.conf)
    if not progress.redactor.is_complete:
        raise InputError(
            "entryPointArguments",
            "take too long to be searched for secrets, so the log could show one; put what is long into an object on S3"
            " that the script reads",
        )
    os.environ.update(secrets.of_catalogs)  # this process settles the job's open writes with them
    progress.warn(*request.warnings)
    if forbids_execution(settings.tmp):
        progress.warn(
            f"{settings.tmp} is mounted noexec, so Java cannot load the native libraries that it unpacks there (snappy,"
            " zstd, lz4)"
        )
    schedule = Schedule.of(invocation.deadline, settings.guard.warn_before_ms)
    return Prepared(settings, schedule, request, machine, secrets, progress.redactor)
