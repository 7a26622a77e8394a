"""A function in an AWS account, or behind any endpoint with Lambda's API, such as an emulator."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from safewriter.objects.client import client_of, queued_id
from soal.console.document import document_of
from soal.console.problem import Failure
from soal.console.view import View
from soal.invocation.event import run_key_of
from soal.invocation.report import report_of
from soal.remote.answer import answer_of
from soal.remote.execution import Execution
from soal.remote.failure import AWS_ERRORS, not_started

if TYPE_CHECKING:
    from soal.invocation.report import Report

_LONGEST_S: Final = 920
"""The time after which Lambda ends a call that waits, 900 s also for functions that may run longer, and a margin.

https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html
"""


@dataclass(frozen=True, slots=True)
class Sent:
    """An event in Lambda's queue. `run_key` is the run's name in `soal runs`, None if the event names no run."""

    request_id: str
    run_key: str | None


@dataclass(frozen=True, slots=True)
class RemoteFunction:
    """A function by name or ARN. `endpoint_url` None: the endpoint of the caller's AWS configuration."""

    name: str
    endpoint_url: str | None = None

    def invoke(self, event: object) -> Report:
        """Invoke the function and wait for its answer. Raises `Problem` if there is none.

        No retries: after a lost answer the job may still run, so the caller must check the run before a retry.
        """
        begun = time.monotonic()
        answer = self._call(event, "RequestResponse")
        text = answer["Payload"].read().decode("utf-8", "replace")
        return report_of(answer_of(text, round((time.monotonic() - begun) * 1000)), None)

    def send(self, event: object) -> Sent:
        """Invoke the function asynchronously. Raises `Problem` unless Lambda has queued the event."""
        answer = self._call(event, "Event")
        return Sent(answer["ResponseMetadata"]["RequestId"], run_key_of(event))

    def is_durable(self) -> bool:
        """Return whether the function is durable; False if Lambda does not answer."""
        try:
            configuration = self._client(retries=2).get_function_configuration(FunctionName=self.name)
        except (BotoCoreError, ClientError):
            return False
        return bool(configuration.get("DurableConfig"))

    def start(self, event: object) -> Execution:
        """Start an execution of a durable function. Raises `Problem` if Lambda refuses the event."""
        arn = self._call(event, "Event").get("DurableExecutionArn")
        if arn is None:
            raise Failure(
                f"function {self.name}: Lambda has taken the event, but names no execution",
                todo="see the run with: soal runs show, by the event's clientToken",
            )
        return Execution(str(arn), self._client(retries=5))

    def _client(self, *, retries: int) -> Any:  # noqa: ANN401 - a boto3 client
        config = Config(
            connect_timeout=5,
            read_timeout=_LONGEST_S,
            retries={"total_max_attempts": retries, "mode": "standard"},
            tcp_keepalive=True,
        )
        return client_of("lambda", config, endpoint=self.endpoint_url)

    def _call(self, event: object, kind: str) -> Any:  # noqa: ANN401 - what boto3 answers
        try:
            answer = self._client(retries=1).invoke(
                FunctionName=self.name, InvocationType=kind, Payload=json.dumps(event).encode()
            )
            if kind == "Event":
                queued_id(answer)
        except AWS_ERRORS as error:
            todo = "name a function that exists there, and allow lambda:InvokeFunction on it"
            raise not_started(f"function {self.name}: {error}", error, todo) from error
        return answer


def sent_view(sent: Sent) -> View:
    """Show that Lambda has queued an event."""
    return View(document_of(sent), (f"queued, request {sent.request_id}",))
