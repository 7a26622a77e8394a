"""The redrive's Lambda function: it invokes failed runs again, as the same runs, up to a number of attempts.

The stack has it only with the context key `redrive_attempts`; `soal redrive` does the same by hand. A schedule runs it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

from aws_lambda_powertools.metrics import MetricUnit
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from pydantic import BaseModel, ConfigDict, Field

from handler import observability
from handler.functions.redrive_queue import NotTakenError, redrive_queue
from handler.input_errors import validated
from safewriter.objects.client import client_of, queued_id
from safewriter.objects.rights import lacking

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from handler.functions.redrive_queue import Redriven

__all__ = ["lambda_handler", "redrive"]

_MESSAGES_MAX: Final = 100
_NEVER_TAKEN: Final = frozenset({"RequestTooLargeException", "InvalidRequestContentException"})
_CONFIG: Final = Config(connect_timeout=2, read_timeout=10, retries={"total_max_attempts": 3, "mode": "standard"})


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    queue: str = Field(alias="SOAL_REDRIVE_QUEUE")
    parked: str = Field(alias="SOAL_REDRIVE_PARKED")
    function: str = Field(alias="SOAL_REDRIVE_FUNCTION")
    jobs: str | None = Field(default=None, alias="SOAL_REDRIVE_JOBS")
    attempts_max: Annotated[int, Field(ge=1, le=100)] = Field(alias="SOAL_REDRIVE_ATTEMPTS")


@observability.metrics.log_metrics
@observability.logger.inject_lambda_context(clear_state=True)
def lambda_handler(_event: object, _context: LambdaContext) -> dict[str, Any]:
    """Go through the failure queue once; the event is ignored."""
    counts = dict.fromkeys(("sent", "parked", "failed"), 0)
    try:
        for redriven in redrive(os.environ):  # logged one by one: a pass that ends early has logged what it sent
            counts[redriven.what] += 1
            observability.logger.info("%s: %s", redriven.what, redriven.reason or "invoked again", **asdict(redriven))
    finally:
        observability.metrics.add_metric("Redriven", MetricUnit.Count, counts["sent"])
    return counts


def redrive(environment: Mapping[str, str]) -> Iterator[Redriven]:
    """Redrive at most a hundred messages of the queue, and set aside those that a redrive cannot help.

    Raises `InputError` for a wrong setting, and boto3's errors if the queue does not answer.
    """
    settings = validated(_Settings, dict(environment), depth=0)
    lambda_: Any = client_of("lambda", _CONFIG)

    def send(event: object) -> str:
        try:
            payload = json.dumps(event).encode()
            return queued_id(lambda_.invoke(FunctionName=settings.function, InvocationType="Event", Payload=payload))
        except ClientError as error:
            why = f"{error}{lacking(error, 'lambda', settings.function)}"
            raise NotTakenError(why, for_ever=error.response["Error"]["Code"] in _NEVER_TAKEN) from error
        except BotoCoreError as error:
            raise NotTakenError(str(error)) from error

    yield from redrive_queue(
        client_of("sqs", _CONFIG),
        settings.queue,
        send,
        attempts_max=settings.attempts_max,
        messages_max=_MESSAGES_MAX,
        parked_url=settings.parked,
        jobs_arn=settings.jobs,
    )
