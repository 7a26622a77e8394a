"""Redrive the messages of the failure queue: invoke each message's run again, as the same run, under the same key.

The queue gets four kinds of messages: Lambda's record of an asynchronous invocation that failed, the event of a durable
execution that failed, a message of the queue of jobs that was tried too often, and an event that a rule could not
deliver.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError
from pydantic import ValidationError

from handler.input_errors import InputError
from handler.outcome.continuation import Continuation, unwrapped
from handler.outcome.result import Result
from handler.outcome.state import State
from handler.request.json_depth import is_too_deep
from handler.request.trigger import recognise
from safewriter.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from handler.request.trigger import Trigger

__all__ = ["NotTakenError", "Redriven", "Replay", "redrive_queue", "replay_of"]

_HIDDEN_S: Final = 600
"""How long a message that was received here stays hidden from other receivers."""
_BATCH_MAX: Final = 10
_PARKED_MAX: Final = 1_000
"""How many messages one pass sets aside, beside those that it invokes with."""
_ATTRIBUTES_MAX: Final = 10
_FIRST_ID: Final = "SoalMessageId"
"""The attribute of a message that was set aside: the id that it had before, which may be the key of its run."""
_GONE: Final = ("sent", "parked")
_NAME_IN_ARN: Final = 6
"""arn:aws:lambda:region:account:function:NAME:qualifier"""
_ERROR: Final = "ErrorCode"
"""The attribute of an event that Lambda has put into a dead-letter queue.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html#invocation-dlq
"""
_NO_KEY: Final = (
    "the key of its run is not in the message: start it again with the key that soal runs list shows as clientToken"
)
_MUST_CHANGE: Final = "the event, the settings or the script must be changed first: {}"


class NotTakenError(Exception):
    """Lambda did not take an event; nothing was started. `for_ever`: it takes no such event."""

    def __init__(self, problem: str, *, for_ever: bool = False) -> None:
        super().__init__(problem)
        self.for_ever = for_ever


@dataclass(frozen=True, slots=True)
class Replay:
    """The event to invoke with, under the run's own key, and how often that was tried (None: nothing tells).

    `hopeless`: why another attempt would end in the same way.
    """

    event: object
    attempt: int | None = None
    hopeless: str | None = None


@dataclass(frozen=True, slots=True)
class Redriven:
    """The result for a message: sent, left (in the queue, since nothing helps), parked (left, but in the other queue)
    or failed (still in the queue, for the next pass); `request_id` of the invocation.
    """

    message_id: str
    what: str
    reason: str | None
    attempt: int | None
    request_id: str | None = None


def replay_of(body: str, message_id: str, *, is_dead_letter: bool = False) -> Replay:
    """Read a message; `ValueError` or `KeyError` if it is none of the four kinds. `is_dead_letter`: Lambda has put the
    event itself there, with an error.
    """
    found = parsed(body) if body.lstrip().startswith(("{", "[", '"')) else None
    if is_too_deep(found):
        raise ValueError("is nested too deeply")
    if is_dead_letter:
        return _of_execution(found)
    if isinstance(found, dict) and {"requestContext", "requestPayload"} <= found.keys():
        return _of_record(found)
    if isinstance(found, dict) and "detail-type" in found:
        return Replay(found)
    # As Lambda had received it, so that the message's own id is its key again.
    return Replay({"Records": [{"eventSource": "aws:sqs", "messageId": message_id, "body": body}]})


def _of_record(record: Mapping[str, Any]) -> Replay:
    try:
        event, before = unwrapped(record["requestPayload"])
        key = _first_key(event, record["requestContext"]) if before is None else before.client_token
    except InputError as error:
        return Replay(record["requestPayload"], None, _MUST_CHANGE.format(error))
    # Counted, since a run that Lambda kills has no result that tells how often it was tried.
    again = Continuation(1 if before is None else before.count + 1, key, event)
    result = _result(record.get("responsePayload"))
    attempt = again.count if result is None else max(again.count, result.attempt or 0)
    hopeless = None
    if result is not None and result.state is State.CANCELLED:
        hopeless = "it was cancelled on request"
    elif result is not None and result.error is not None and result.error.usage:
        hopeless = _MUST_CHANGE.format(result.error.message)
    return Replay(parsed(again.payload()), attempt, hopeless)


def _of_execution(found: object) -> Replay:
    try:
        event, before = unwrapped(found)
    except InputError as error:
        return Replay(found, None, _MUST_CHANGE.format(error))
    # The key of an event without a token is made with the function's name, or the execution's id: neither is here.
    key = (
        _token(event, recognise(event) if isinstance(event, dict) else None) if before is None else before.client_token
    )
    if key is None:
        return Replay(event, None, _NO_KEY)
    again = Continuation(1 if before is None else before.count + 1, key, event)
    return Replay(parsed(again.payload()), again.count)


def _first_key(event: object, context: Mapping[str, Any]) -> str:
    """Return the key of the run that the failed function made of the event, as `Job.of` does.

    The name is the failed function's: this code runs in another function, or on an operator's machine.
    """
    trigger = recognise(event) if isinstance(event, dict) else None
    token = _token(event, trigger)
    if token is not None:
        return token
    parts = str(dict(context).get("functionArn")).split(":")
    name = parts[_NAME_IN_ARN] if len(parts) > _NAME_IN_ARN else None
    return (None if trigger is None else trigger.run_key(name)) or str(context["requestId"])


def _token(event: object, trigger: Trigger | None) -> str | None:
    document = event if trigger is None else trigger.document or {}
    token = document.get("clientToken") if isinstance(document, dict) else None
    return token if isinstance(token, str) else None


def _result(answer: object) -> Result | None:
    try:
        return Result.model_validate_json(answer["errorMessage"])  # type: ignore[index]  # or TypeError, below
    except (TypeError, KeyError, ValidationError):
        return None  # a timeout, a crash, an event that was too old


def redrive_queue(
    sqs: Any,  # noqa: ANN401 - a boto3 client
    url: str,
    send: Callable[[object], str | None] | None,
    *,
    attempts_max: int,
    messages_max: int,
    parked_url: str | None = None,
    wait_s: int = 1,
) -> Iterator[Redriven]:
    """Receive messages, invoke with each, and delete those that Lambda took; `send` returns the request id, None: a dry
    run.

    Messages that no redrive can help are set aside in the queue `parked_url`, so that they are not in the way of others
    at the next pass; without one they are left. They do not count among `messages_max`.
    Raises the errors of `sqs`. A message is deleted only after Lambda, or the other queue, has it. So it may be sent
    twice, which is the same run, or be in both queues; it is never in none.
    """
    left: dict[str, str] = {}
    try:
        seen = parked = 0
        while seen < messages_max and parked < _PARKED_MAX:
            wanted = min(_BATCH_MAX, messages_max - seen)
            messages = sqs.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=wanted,
                MessageAttributeNames=["All"],
                VisibilityTimeout=_HIDDEN_S,
                WaitTimeSeconds=wait_s,
            ).get("Messages", ())
            if not messages:
                return
            for message in messages:
                left[message["MessageId"]] = message["ReceiptHandle"]
                one = _redriven(message, send, attempts_max)
                if one.what == "left" and parked_url is not None and send is not None:
                    one = _parked(sqs, parked_url, message, one)
                parked += one.what == "parked"
                seen += one.what != "parked"
                if one.what in _GONE and send is not None:
                    sqs.delete_message(QueueUrl=url, ReceiptHandle=left.pop(one.message_id))
                yield one
    finally:
        for handle in left.values():
            sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)


def _redriven(message: Mapping[str, Any], send: Callable[[object], str | None] | None, attempts_max: int) -> Redriven:
    name, attributes = message["MessageId"], message.get("MessageAttributes", {})
    first_id = attributes.get(_FIRST_ID, {}).get("StringValue", name)
    try:
        replay = replay_of(message["Body"], first_id, is_dead_letter=_ERROR in attributes)
    except (ValueError, KeyError, TypeError) as error:
        return Redriven(name, "left", f"it cannot be read: {error!r}", None)
    if replay.hopeless is not None:
        return Redriven(name, "left", replay.hopeless, replay.attempt)
    if replay.attempt is not None and replay.attempt >= attempts_max:
        return Redriven(name, "left", f"it has had {replay.attempt} attempts", replay.attempt)
    try:
        return Redriven(name, "sent", None, replay.attempt, None if send is None else send(replay.event))
    except NotTakenError as error:
        return Redriven(name, "left" if error.for_ever else "failed", str(error), replay.attempt)


def _parked(sqs: Any, url: str, message: Mapping[str, Any], one: Redriven) -> Redriven:  # noqa: ANN401 - as above
    # Its attributes go with it: they say what Lambda or EventBridge could not do. If there are too many, those go that
    # nothing here reads.
    given = sorted(message.get("MessageAttributes", {}).items(), key=lambda item: item[0] not in (_ERROR, _FIRST_ID))
    attributes = dict(given[: _ATTRIBUTES_MAX - 1])
    attributes.setdefault(_FIRST_ID, {"DataType": "String", "StringValue": one.message_id})
    try:
        sqs.send_message(QueueUrl=url, MessageBody=message["Body"], MessageAttributes=attributes)
    except ClientError as error:  # of this message, such as its size; the others must not wait for it
        return replace(one, what="failed", reason=f"{one.reason}; it could not be set aside: {error}")
    return replace(one, what="parked")
