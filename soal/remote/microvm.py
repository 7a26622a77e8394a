"""A job in a Lambda MicroVM of a stack: started with the arguments of the stack's output, followed by its result.

https://docs.aws.amazon.com/lambda/latest/microvm-api/API_RunMicrovm.html
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError, UnknownServiceError

from handler.runs.store import result_key
from safewriter.objects import StoreError
from safewriter.parsing import parsed
from soal.console.document import document_of
from soal.console.problem import EXIT_FAILED, EXIT_TRY_AGAIN, Failure, Problem
from soal.console.view import View
from soal.invocation.event import run_key_of
from soal.invocation.report import Report, report_of
from soal.remote.answer import Answer
from soal.remote.aws import aws_client
from soal.remote.failure import AWS_ERRORS, failed, not_started
from soal.remote.polling import POLL_S, polled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from safewriter.objects import ObjectStore

_LAUNCH: Final = "MicrovmLaunch"
_BUCKET: Final = "CheckpointBucket"
_OUTPUTS: Final = (_LAUNCH, _BUCKET)
_UNKNOWN_MAX: Final = 20
"""Consecutive answers that Lambda does not know a MicroVM."""
_RESULT_MAX_BYTES: Final = 8 << 20
_ENDED: Final = "TERMINATED"
_NOT_FOUND: Final = "ResourceNotFoundException"
"""Lambda does not know a MicroVM right after its start, since what it answers is eventually consistent; and it may
forget one after its end.
"""


@dataclass(frozen=True, slots=True)
class Started:
    """A MicroVM that Lambda has started. `run_key` is the run's name in `soal runs`, None if the event names no run."""

    microvm_id: str
    run_key: str | None


@dataclass(frozen=True, slots=True)
class RemoteMicrovms:
    """The MicroVMs of a stack: `launch` are the arguments of RunMicrovm, `bucket` is the checkpoint bucket."""

    launch: Mapping[str, Any]
    bucket: str
    endpoint_url: str | None = None

    @classmethod
    def of_stack(cls, name: str, endpoint_url: str | None) -> RemoteMicrovms:
        """Read a stack's outputs. Raises `Problem` if it cannot be read, or has no MicroVM image."""
        try:
            (stack,) = aws_client("cloudformation", endpoint_url).describe_stacks(StackName=name)["Stacks"]
        except AWS_ERRORS as error:
            todo = "name a stack that exists there, and allow cloudformation:DescribeStacks on it"
            raise failed(f"stack {name}: {error}", error, todo) from error
        outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", ())}
        if missing := [output for output in _OUTPUTS if output not in outputs]:
            raise Problem(
                f"stack {name} has no output {' or '.join(missing)}",
                todo="deploy it with -c microvm_timeout_s=SECONDS: docs/guides/microvm.md",
            )
        return cls(parsed(outputs[_LAUNCH]), outputs[_BUCKET], endpoint_url)

    @property
    def log_group(self) -> str:
        """The group of the MicroVMs' logs; each has a stream of its id."""
        return str(self.launch["logging"]["cloudWatch"]["logGroup"])

    def _client(self) -> Any:  # noqa: ANN401 - a boto3 client
        try:
            return aws_client("lambda-microvms", self.endpoint_url)
        except UnknownServiceError as error:
            raise Problem("this boto3 is older than MicroVMs", todo="pip install --upgrade boto3") from error

    def start(self, event: object) -> Started:
        """Start a MicroVM with an event. Raises `Problem` for an event that is too large, or if Lambda refuses it.

        A repeated request, as after a lost answer, starts no second MicroVM: boto3 gives each call a token.
        """
        client = self._client()
        payload = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        try:
            size = len(payload.encode())
        except UnicodeEncodeError as error:
            todo = "write a whole character for the one that this names"
            raise Problem(f"the event is no text in UTF-8: {error}", todo=todo) from error
        most = _payload_max(client)
        if size > most:
            raise Problem(
                f"the event has {size} bytes, and a MicroVM takes {most} at most",
                todo="put what is long into an object, and give its s3a:// path as an argument of the script",
            )
        try:
            answer = client.run_microvm(**self.launch, runHookPayload=payload)
        except AWS_ERRORS as error:
            todo = "allow lambda:RunMicrovm, lambda:PassNetworkConnector and iam:PassRole on what MicrovmLaunch names"
            raise not_started(f"image {self.launch['imageIdentifier']}: {error}", error, todo) from error
        except KeyboardInterrupt:
            raise Problem(
                "stopped while Lambda was asked to start a MicroVM, which may run all the same",
                todo=f"look for it with: soal runs show {run_key_of(event) or 'RUN_KEY'}; or with: aws lambda-microvms"
                " list-microvms",
                exit_code=EXIT_TRY_AGAIN,
            ) from None
        return Started(str(answer["microvmId"]), run_key_of(event))

    def followed(
        self, started: Started, store: ObjectStore, says: Callable[[str], None], *, poll_s: float = POLL_S
    ) -> Report:
        """Wait for the result, or for the MicroVM's end, which Lambda brings at its maximum duration; call `says` for
        each state. Raises `Problem` if one of the two cannot be asked, if Lambda does not know the MicroVM, or on
        Ctrl-C; the MicroVM may go on.
        """
        try:
            return self._followed(started, store, says, poll_s)
        except KeyboardInterrupt:
            raise Problem(
                "stopped waiting; the MicroVM goes on",
                todo=f"look again with: soal runs show {started.run_key or 'RUN_KEY'}; end it with: aws lambda-microvms"
                f" terminate-microvm --microvm-identifier {started.microvm_id}",
                exit_code=EXIT_TRY_AGAIN,
            ) from None

    def _followed(self, started: Started, store: ObjectStore, says: Callable[[str], None], poll_s: float) -> Report:
        client, begun, not_found = self._client(), time.monotonic(), 0
        microvm_id = started.microvm_id

        def look() -> Report | str:
            nonlocal not_found
            # The state first: a result that is not there after the end will never be there.
            state, why = _state(client, microvm_id)
            stored = store.get(result_key(microvm_id), max_bytes=_RESULT_MAX_BYTES)
            duration_ms = round((time.monotonic() - begun) * 1000)
            if stored is not None:
                return report_of(Answer(_document(stored.body), None, timed_out=False, duration_ms=duration_ms), None)
            if state == _ENDED:
                return Report(None, _unknown(started, state, why), EXIT_FAILED, duration_ms)
            not_found = 0 if state else not_found + 1
            if not_found > _UNKNOWN_MAX:  # no end that anybody has seen, after which another one could start
                todo = f"look for it with: soal runs show {started.run_key or 'RUN_KEY'}"
                raise Failure(_unknown(started, state, why), todo=todo)
            return state.lower()

        return polled(
            look,
            says,
            is_refused=_is_refused,
            lost=lambda error: _lost_sight(microvm_id, error, self.bucket),
            poll_s=poll_s,
        )


def _payload_max(client: Any) -> int:  # noqa: ANN401 - a boto3 client
    """Return the most bytes of a payload by the service's own model: its text, as AWS's guide, says 16,384, its shape
    4,096.
    """
    shape = client.meta.service_model.operation_model("RunMicrovm").input_shape
    return int(shape.members["runHookPayload"].metadata["max"])


def _state(client: Any, microvm_id: str) -> tuple[str, str]:  # noqa: ANN401 - a boto3 client
    """Return a MicroVM's state, and the reason of it if Lambda gives one; no state if Lambda does not know it."""
    try:
        answer = client.get_microvm(microvmIdentifier=microvm_id)
    except ClientError as error:
        if error.response["Error"]["Code"] != _NOT_FOUND:
            raise
        return "", ""
    return str(answer["state"]), str(answer.get("stateReason", ""))


def _document(body: bytes) -> Any:  # noqa: ANN401 - any JSON value; the report says what is none
    try:
        return parsed(body)
    except ValueError:
        return body.decode("utf-8", "replace")


def _unknown(started: Started, state: str, why: str) -> str:
    reason = f" ({why})" if why else ""
    has_ended = f"the MicroVM {started.microvm_id} has ended{reason}, and"
    not_known = f"Lambda does not know the MicroVM {started.microvm_id}, which"
    token = "" if started.run_key is None else f", {started.run_key},"
    return (
        f"unknown: {has_ended if state else not_known} has left no result; what its job has committed stays, and the"
        f" next attempt with the same clientToken{token} or the sweeper settles its open writes"
    )


def _is_refused(error: Exception) -> bool:
    cause = error.__cause__ if isinstance(error, StoreError) else error
    code = str(cause.response["Error"]["Code"]) if isinstance(cause, ClientError) else ""
    return code in ("403", "NoSuchBucket") or code.startswith(("AccessDenied", "Validation", "UnrecognizedClient"))


def _lost_sight(microvm_id: str, error: Exception, bucket: str) -> Problem:
    text = f"the MicroVM {microvm_id} goes on, but: {error}"
    if isinstance(error, StoreError):
        # Without the right to list, S3 answers for a missing result as for a forbidden one.
        return Failure(text, todo=f"allow s3:GetObject on results/* of {bucket}, and s3:ListBucket on the bucket")
    return failed(text, error, "allow lambda:GetMicrovm on its image")


def started_view(started: Started) -> View:
    """Show that Lambda has started a MicroVM."""
    return View(document_of(started), (f"started the MicroVM {started.microvm_id}",))
