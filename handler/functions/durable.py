"""The durable Lambda function: one execution runs the job's attempts until one of them is the last.

Each attempt is an invocation with its full time, and the same code as in the plain function (handler.app).
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from aws_durable_execution_sdk_python import durable_execution
from aws_durable_execution_sdk_python.lambda_service import LambdaClient

from handler.app import attempt
from handler.durable.execution import execution_id, run_attempts
from handler.durable.main_thread import MainThread
from handler.outcome.delivery import deliver
from handler.outcome.state import State
from handler.settings import read_settings
from safewriter.objects.client import own_answers

if TYPE_CHECKING:
    from aws_durable_execution_sdk_python import DurableContext
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from handler.outcome.result import Result

__all__ = ["lambda_handler"]

_MAIN: Final = MainThread()


def lambda_handler(event: object, context: LambdaContext) -> dict[str, Any]:
    """Handle one invocation of an execution; return the SDK's answer: the result, or that the execution is pending."""
    # The service continues the run; the handler must not invoke itself.
    environment = {**os.environ, "SOAL_CONTINUE_MAX": "0"}

    def run(job: object, durable: DurableContext) -> dict[str, Any]:
        arn = durable.execution_context.durable_execution_arn

        def attempt_here() -> Result:
            return attempt(job, context, environment, request_id=execution_id(arn), execution=arn)

        result = run_attempts(
            durable,
            lambda: _MAIN.run(attempt_here),
            memory_mb=int(context.memory_limit_in_mb),
        )
        if result.state is State.CANCELLED:  # cancelled on purpose: raise no alarm, and cause no redrive
            return result.document()
        settings = None
        with suppress(Exception):  # the attempt has reported what is wrong with them
            settings = read_settings(environment)
        return deliver(result, settings)

    sdk_context: Any = context  # the SDK's own type for it is a protocol
    client = own_answers(LambdaClient.initialize_client().client)  # the SDK keeps it
    answer: dict[str, Any] = _MAIN.serve(lambda: durable_execution(run, boto3_client=client)(event, sdk_context))
    return answer
