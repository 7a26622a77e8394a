"""The Lambda function: event → job → command → child → outcome → result."""

from __future__ import annotations

import os
import time
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from handler import observability
from handler.input_errors import InputError
from handler.outcome.delivery import deliver
from handler.outcome.outcome import is_our_fault, of_error
from handler.process.tree import close_to_others
from handler.redaction.redact import Redactor
from handler.sandbox.between_jobs import clean_all
from handler.services import Services
from handler.settings import read_settings
from handler.spark.command import compose_machine
from handler.spark.machine import this_machine
from handler.stages.finish import record
from handler.stages.prepare import prepare
from handler.stages.progress import Invocation, Progress
from handler.stages.run import run
from safewriter.deadline import Deadline, epoch_ms
from safewriter.entropy import renew, unique_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from handler.outcome.result import Result
    from handler.settings import HandlerSettings

__all__ = ["attempt", "handle", "initialise", "lambda_handler", "refuse_several_events"]

_SERVICES: Final = Services()
_PROVISIONED: Final = "provisioned-concurrency"
_READY_TIMEOUT_S: Final = 60
"""For the JVM; Lambda allows an initialisation for provisioned concurrency at least 130 s:
https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
"""
_CLEAN_MAX_S: Final = 5
"""For the files of a killed process; Lambda allows an initialisation ten seconds. The first job removes the rest."""
_AT_ONCE: Final = "AWS_LAMBDA_MAX_CONCURRENCY"
_warm = False


def lambda_handler(event: object, context: LambdaContext) -> dict[str, Any]:
    """Run the job that an event describes; return its result document, or raise `JobFailed` with it."""
    result, settings = _attempt(event, context, os.environ, context.aws_request_id)
    return deliver(result, settings)


def attempt(
    event: object, context: LambdaContext, environment: Mapping[str, str], *, request_id: str, execution: str
) -> Result:
    """Run the job that an event describes as an attempt of the durable execution with the ARN `execution`; never
    raises. `request_id` is the run key of an event without one.
    """
    result: Result = _attempt(event, context, environment, request_id, execution)[0]
    return result


@observability.metrics.log_metrics
@observability.logger.inject_lambda_context(clear_state=True)
def _attempt(
    event: object,
    context: LambdaContext,
    environment: Mapping[str, str],
    request_id: str,
    execution: str | None = None,
) -> tuple[Result, HandlerSettings | None]:
    global _warm
    close_to_others()
    cold_start, _warm = not _warm, True
    renew(request_id)
    began_ms = epoch_ms()
    invocation = Invocation(
        deadline=Deadline(began_ms + context.get_remaining_time_in_millis(), began_ms),
        request_id=request_id,
        run_id=unique_id(),
        memory_mb=int(context.memory_limit_in_mb),
        cold_start=cold_start,
        function=context.invoked_function_arn,
        execution=execution,
    )
    progress = Progress(invocation)
    result = handle(event, progress, environment)
    observability.count(result)
    if progress.settings is not None:  # else a variable is wrong, which is an error of the function's version
        observability.count_usage_error(result, version=context.function_version, began_ms=began_ms)
    return result, progress.settings


def handle(event: object, progress: Progress, environment: Mapping[str, str], services: Services = _SERVICES) -> Result:
    """Run the job and return its result; never raises."""
    progress.redactor = Redactor.of_environment({**environment, **services.credentials()})
    observability.mask_lines(progress.masked)
    try:
        prepared = prepare(progress, event, environment, services)
        outcome = run(prepared, progress, environment, services)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong here, the answer is a document
        outcome = of_error(error, progress.writes, started=progress.started)
        trace = "".join(traceback.format_exception(error)) if is_our_fault(outcome) else outcome.details
        observability.logger.error(progress.masked(trace))
    return record(progress, outcome, services)


def refuse_several_events(environment: Mapping[str, str]) -> None:
    """Raise `InputError` if Lambda would send several events to this environment at once.

    Its runtime would start a handler for each, and each would empty /tmp, count the memory and end the processes of all
    others. https://docs.aws.amazon.com/lambda/latest/dg/lambda-managed-instances-python-runtime.html
    """
    if (number := environment.get(_AT_ONCE, "1")) != "1":
        raise InputError(
            _AT_ONCE,
            f"is {number}: the environments of this function get several events at once, and a job needs one of its"
            " own; set PerExecutionEnvironmentMaxConcurrency to 1",
        )


def initialise(environment: Mapping[str, str], services: Services = _SERVICES) -> None:
    """Start the JVM while Lambda initialises the sandbox. Errors are suppressed: the first event meets and reports
    them.

    For provisioned concurrency and on Managed Instances, return when the JVM is ready for a job: no event waits for the
    sandbox yet, and Lambda may freeze it once it is initialised. Otherwise return at once: an event may be waiting, and
    starts beside the JVM.
    """
    with suppress(Exception):
        settings = read_settings(environment)
        if settings.reuse == "off" or settings.secrets:
            return
        is_awaited = settings.is_managed or settings.initialization == _PROVISIONED
        until_s = time.monotonic() + _CLEAN_MAX_S

        def may_clean() -> bool:
            return time.monotonic() < until_s

        if any(clean_all(settings.own_directories, may_clean)):  # some files could not be removed; a sandbox would be
            return
        machine = this_machine(int(environment["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]), is_managed=settings.is_managed)
        total_ms, inherited = settings.timeout_s * 1000, {**environment, **services.credentials()}
        services.reuse.begin(
            settings.tmp,
            lambda sandbox: compose_machine(sandbox, settings, machine, total_ms, inherited),
            may_clean=may_clean,
            ready_within_s=_READY_TIMEOUT_S if is_awaited else None,
        )


if "AWS_LAMBDA_RUNTIME_API" in os.environ:
    refuse_several_events(os.environ)
    initialise(os.environ)
