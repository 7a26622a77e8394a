"""Run the attempts of an execution as steps of the durable service.

The service replays this from the beginning with the results of the completed steps, so code outside a step has no side
effects. A step runs at most once: if its invocation is killed, the attempt is lost, and the table shows what it did.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from aws_durable_execution_sdk_python import StepError
from aws_durable_execution_sdk_python.config import Duration, StepConfig, StepSemantics
from aws_durable_execution_sdk_python.exceptions import StepInterruptedError
from aws_durable_execution_sdk_python.retries import RetryDecision
from aws_durable_execution_sdk_python.serdes import JsonSerDes

from handler.durable.attempts import LOST, Attempt, all_told, pause_s

if TYPE_CHECKING:
    from collections.abc import Callable

    from aws_durable_execution_sdk_python import DurableContext

    from handler.outcome.result import Result

__all__ = ["execution_id", "run_attempts"]

_ONCE: Final = StepConfig(
    retry_strategy=lambda _error, _attempt: RetryDecision.no_retry(),
    step_semantics=StepSemantics.AT_MOST_ONCE_PER_RETRY,
    serdes=JsonSerDes(),  # plain JSON, readable in the history; the SDK's own form names each type
)
_ID_MAX: Final = 64
"""Of a longer id the run key is a hash."""


def run_attempts(context: DurableContext, attempt: Callable[[], Result], *, memory_mb: int) -> Result:
    """Run attempts until none follows and return their combined document; suspend the execution between attempts."""
    attempts: list[Attempt] = []
    while True:
        number = len(attempts) + 1
        attempts.append(_step(context, f"attempt-{number}", attempt, memory_mb))
        wait_s = pause_s(attempts)
        if wait_s is None:
            return all_told(attempts)
        context.wait(Duration.from_seconds(wait_s), name=f"pause-{number}")


def _step(context: DurableContext, name: str, attempt: Callable[[], Result], memory_mb: int) -> Attempt:
    try:
        content: dict[str, Any] = context.step(
            lambda _: Attempt.of(attempt()).model_dump(mode="json", by_alias=True), name=name, config=_ONCE
        )
    except StepError as error:
        if error.error_type.endswith(StepInterruptedError.__name__):
            details = "the invocation was killed before the handler could answer; the next one settles its open writes"
            return Attempt.without_result(LOST, details, memory_mb=memory_mb)
        details = f"the handler has failed behind the job: {error.message}"
        return Attempt.without_result(error.error_type.rpartition(".")[2], details, memory_mb=memory_mb)
    return Attempt.model_validate(content)


def execution_id(arn: str) -> str:
    """Return the id of an execution, the last part of its ARN: the run key of an event without one.

    https://docs.aws.amazon.com/lambda/latest/dg/durable-security.html
    """
    name = arn.rpartition("/")[2]
    return name if 0 < len(name) <= _ID_MAX else hashlib.sha256(arn.encode()).hexdigest()
