"""Read a message of the failure queue: return the event that invokes the same run, under the same key.

The queue receives four kinds of messages: Lambda's record of a failed asynchronous invocation, the event of a failed
durable execution, a message of the queue of jobs that was tried too often, and an event that a rule could not deliver.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from handler.input_errors import InputError
from handler.outcome.result import Result
from handler.outcome.state import State
from handler.request.continuation import Continuation, unwrapped
from handler.request.json_depth import is_too_deep
from handler.request.trigger import recognise
from safewriter.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from handler.request.trigger import Trigger

__all__ = ["Origin", "Replay", "replay_of"]

_NAME_IN_ARN: Final = 6
"""arn:aws:lambda:region:account:function:NAME:qualifier"""
_NO_KEY: Final = (
    "the key of its run is not in the message: start it again by the event of a continuation, which"
    " docs/reference/event shows, with the key that soal runs list shows"
)
_FROM_NOWHERE: Final = (
    "nothing tells whether a rule or a message of the queue of jobs brought this event, and the key of its run is made"
    " of that: start it again by the event of a continuation, which docs/reference/event shows, with the key that soal"
    " runs list shows"
)
_MUST_CHANGE: Final = "the event, the settings or the script must be changed first: {}"


@dataclass(frozen=True, slots=True)
class Replay:
    """The event to invoke with, under the run's own key, and the number of attempts so far (None: unknown).

    `hopeless`: why another attempt would end in the same way.
    """

    event: object
    attempt: int | None = None
    hopeless: str | None = None


class Origin(Enum):
    """The service that put a message into the failure queue, by the attributes beside the body, which a caller may have
    written. The run key is derived from the event in the form in which the function first received it.
    """

    QUEUE = "SQS, from the queue of jobs"
    RULE = "EventBridge"
    EXECUTION = "Lambda, the event of an execution"
    UNTOLD = "Lambda, as a record; or nobody says"


def replay_of(body: str, message_id: str, origin: Origin = Origin.UNTOLD) -> Replay:
    """Read a message; any `Exception` means that it is none of the four kinds."""
    queued = {"Records": [{"eventSource": "aws:sqs", "messageId": message_id, "body": body}]}
    if origin is Origin.QUEUE:  # as Lambda received it, so that the message's id is its key again
        return Replay(queued)
    content = parsed(body) if body.lstrip().startswith(("{", "[", '"')) else None
    if is_too_deep(content):
        raise ValueError("is nested too deeply")
    if origin is Origin.EXECUTION:
        return _of_execution(content)
    if origin is Origin.RULE:
        return Replay(content) if isinstance(content, dict) else Replay(content, None, "it is no event of a rule")
    if isinstance(content, dict) and {"requestContext", "requestPayload"} <= content.keys():
        return _of_record(content)
    if isinstance(content, dict) and "detail-type" in content:
        return Replay(content, None, _FROM_NOWHERE)
    return Replay(queued)  # only SQS puts such a body there


def _of_record(record: Mapping[str, Any]) -> Replay:
    try:
        event, before = unwrapped(record["requestPayload"])
        key = _first_key(event, record["requestContext"]) if before is None else before.client_token
        count, payload = _continued(event, before, key)
    except InputError as error:
        return Replay(record["requestPayload"], None, _MUST_CHANGE.format(error))
    result = _result(record.get("responsePayload"))
    attempt = count if result is None else max(count, result.attempt or 0)
    hopeless = None
    if result is not None and result.state is State.CANCELLED:
        hopeless = "it was cancelled on request"
    elif result is not None and result.error is not None and result.error.usage:
        hopeless = _MUST_CHANGE.format(result.error.message)
    return Replay(payload, attempt, hopeless)


def _of_execution(content: object) -> Replay:
    try:
        event, before = unwrapped(content)
        # Without a token the key would need the function's name or the execution's id: the message has neither.
        key = _token(event, _trigger(event)) if before is None else before.client_token
        if key is None:
            return Replay(event, None, _NO_KEY)
        count, payload = _continued(event, before, key)
    except InputError as error:
        return Replay(content, None, _MUST_CHANGE.format(error))
    return Replay(payload, count)


def _continued(event: object, before: Continuation | None, key: str) -> tuple[int, object]:
    """Return the attempts so far, and the event of the next one; `InputError` if the function would refuse it.

    The event carries the count, since a run that Lambda kills leaves no result with it.
    """
    continuation = Continuation(1 if before is None else before.count + 1, key, event)
    payload = parsed(continuation.payload())
    unwrapped(payload)
    return continuation.count, payload


def _first_key(event: object, context: object) -> str:
    """Return the run key that the failed function derived from the event, as `Job.of` does.

    It contains that function's name: this code runs in another function, or on an operator's machine.
    """
    trigger = _trigger(event)
    token = _token(event, trigger)
    if token is not None:
        return token
    if not isinstance(context, dict):
        raise TypeError("requestContext is no object")
    if trigger is not None:
        parts = str(context["functionArn"]).split(":")
        if len(parts) <= _NAME_IN_ARN:
            raise ValueError(f"functionArn {context['functionArn']!r} names no function")
        return str(trigger.run_key(parts[_NAME_IN_ARN]))  # a trigger that `recognise` returns has an identity
    if not isinstance(context["requestId"], str):
        raise TypeError("requestId is no text")
    return context["requestId"]


def _trigger(event: object) -> Trigger | None:
    return recognise(event) if isinstance(event, dict) else None


def _token(event: object, trigger: Trigger | None) -> str | None:
    document = event if trigger is None else trigger.document or {}
    token = document.get("clientToken") if isinstance(document, dict) else None
    return token if isinstance(token, str) else None


def _result(answer: object) -> Result | None:
    try:
        return Result.model_validate_json(answer["errorMessage"])  # type: ignore[index]  # or TypeError, below
    except (TypeError, KeyError, ValueError):
        return None  # a timeout, a crash, an event that was too old
