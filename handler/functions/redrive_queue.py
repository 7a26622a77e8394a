"""Redrive the messages of the failure queue: invoke each message's run again, as the same run (`replay`)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from handler.functions.failed_message import Origin, replay_of
from safewriter.objects.rights import lacking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["NotTakenError", "Redriven", "redrive_queue"]

_HIDDEN_S: Final = 600
"""How long a received message stays hidden from other receivers."""
_BATCH_MAX: Final = 10
_PARKED_MAX: Final = 1_000
"""How many messages one pass may set aside, besides those that it redrives."""
_ATTRIBUTES_MAX: Final = 10
_MESSAGE_MAX_BYTES: Final = 1_048_576
"""SQS counts the body plus the names, types and values of the attributes. Lambda accepts no larger event."""
_BODY_MAX_BYTES: Final = _MESSAGE_MAX_BYTES - 1024
"""A larger message has no room for the attributes that name its run, so it is never sent: a copy without them would be
another run.
"""
_MOVED: Final = "DeadLetterQueueSourceArn"
"""The attribute that SQS sets on a message that it has moved from another queue; no sender can set it."""
_FIRST_ID: Final = "SoalMessageId"
"""The attribute of a message that was set aside: its previous id, which may be the key of its run."""
_FIRST_QUEUE: Final = "SoalQueue"
"""The attribute of a message that was set aside, if SQS had moved it from another queue: that queue."""
_RULE: Final = "RULE_ARN"
"""The attribute of an event that EventBridge could not deliver.
https://docs.aws.amazon.com/eventbridge/latest/userguide/rule-dlq.html
"""
_GONE: Final = ("sent", "parked")
_ERROR: Final = "ErrorCode"
"""The attribute of an event that Lambda has put into a dead-letter queue.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html#invocation-dlq
"""


class NotTakenError(Exception):
    """Lambda did not accept an event; nothing was started. `for_ever`: Lambda never accepts such an event."""

    def __init__(self, problem: str, *, for_ever: bool = False) -> None:
        super().__init__(problem)
        self.for_ever = for_ever


@dataclass(frozen=True, slots=True)
class Redriven:
    """The result for a message. `what`: sent, left (in the queue: a redrive cannot help), parked (the same, but moved
    to the other queue) or failed (in the queue, for the next pass). `request_id`: that of the invocation.
    """

    message_id: str
    what: str
    reason: str | None
    attempt: int | None
    request_id: str | None = None


def redrive_queue(
    sqs: Any,  # noqa: ANN401 - a boto3 client
    url: str,
    send: Callable[[object], str | None] | None,
    *,
    attempts_max: int,
    messages_max: int,
    parked_url: str | None = None,
    jobs_arn: str | None = None,
    wait_s: int = 1,
) -> Iterator[Redriven]:
    """Receive messages, invoke the function with each, and delete those that Lambda accepted. `send` returns the
    request id; None: a dry run.

    Messages that a redrive cannot help are moved to the queue `parked_url`, so that they do not delay others at the
    next pass; without that queue they are left. They do not count towards `messages_max`. A message that SQS has moved
    from a queue other than `jobs_arn`, the queue of jobs, is one of these: its sender may have no right to start a run.
    Raises the errors of `sqs`, but none for the content of a message. A message is deleted only when Lambda or the
    other queue has it and the caller has the `Redriven`. So it may be sent twice, which is the same run, or be in both
    queues; it is never lost. On any exit, all other messages become visible again.
    """
    handles: dict[str, str] = {}
    try:
        count = aside = 0
        while count < messages_max and aside < _PARKED_MAX:
            batch = min(_BATCH_MAX, messages_max - count)
            messages = sqs.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=batch,
                AttributeNames=[_MOVED],
                MessageAttributeNames=["All"],
                VisibilityTimeout=_HIDDEN_S,
                WaitTimeSeconds=wait_s,
            ).get("Messages", ())
            if not messages:
                return
            handles.update((message["MessageId"], message["ReceiptHandle"]) for message in messages)
            for message in messages:
                redriven = _redriven(message, send, attempts_max, jobs_arn)
                if redriven.what == "left" and parked_url is not None and send is not None:
                    aside += 1
                    redriven = _parked(sqs, parked_url, message, redriven)
                else:
                    count += 1
                yield redriven
                if redriven.what in _GONE and send is not None:
                    sqs.delete_message(QueueUrl=url, ReceiptHandle=handles[redriven.message_id])
                    del handles[redriven.message_id]
    finally:
        for handle in handles.values():
            with suppress(ClientError):  # of this message; it becomes visible by itself later
                sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)


def _redriven(
    message: Mapping[str, Any],
    send: Callable[[object], str | None] | None,
    attempts_max: int,
    jobs_arn: str | None,
) -> Redriven:
    name, body = message["MessageId"], message["Body"]
    if (reason := _never_sent(message, jobs_arn)) is not None:
        return Redriven(name, "left", reason, None)
    try:
        replay = replay_of(body, _first_id(message), _origin(message))
    except Exception as error:  # noqa: BLE001 - no content of a message may end a pass
        return Redriven(name, "left", f"it cannot be read: {error!r}", None)
    if replay.hopeless is not None:
        return Redriven(name, "left", replay.hopeless, replay.attempt)
    if replay.attempt is not None and replay.attempt >= attempts_max:
        return Redriven(name, "left", f"it has had {replay.attempt} attempts", replay.attempt)
    try:
        return Redriven(name, "sent", None, replay.attempt, None if send is None else send(replay.event))
    except NotTakenError as error:
        return Redriven(name, "left" if error.for_ever else "failed", str(error), replay.attempt)


def _never_sent(message: Mapping[str, Any], jobs_arn: str | None) -> str | None:
    """Return why the message is refused unread; None if it is not."""
    moved_from = _moved_from(message)
    if moved_from is not None and moved_from != jobs_arn:
        jobs = f"the queue of jobs is {jobs_arn}" if jobs_arn else "no queue of jobs is named (--job-queue-arn)"
        return f"SQS has moved it from {moved_from}, and {jobs}"
    if (size := len(message["Body"].encode())) > _BODY_MAX_BYTES:
        return f"it has {size} bytes; a redrive sends {_BODY_MAX_BYTES} at most"
    return None


def _moved_from(message: Mapping[str, Any]) -> str | None:
    """Return the queue from which SQS has moved a message, by SQS itself or by the redrive's attribute of a copy that
    was set aside. In any other message a sender may have written that attribute: it proves nothing.
    """
    queue: str | None = message.get("Attributes", {}).get(_MOVED)
    if queue is None and (attribute := message.get("MessageAttributes", {}).get(_FIRST_QUEUE)) is not None:
        queue = str(attribute.get("StringValue"))
    return queue


def _origin(message: Mapping[str, Any]) -> Origin:
    attributes = message.get("MessageAttributes", {})
    if _moved_from(message) is not None:
        return Origin.QUEUE
    if _ERROR in attributes:
        return Origin.EXECUTION
    return Origin.RULE if _RULE in attributes else Origin.UNTOLD


def _first_id(message: Mapping[str, Any]) -> str:
    name: str = message["MessageId"]
    if _MOVED in message.get("Attributes", {}):
        return name
    return str(message.get("MessageAttributes", {}).get(_FIRST_ID, {}).get("StringValue", name))


def _parked(sqs: Any, url: str, message: Mapping[str, Any], redriven: Redriven) -> Redriven:  # noqa: ANN401 - as above
    try:
        sqs.send_message(QueueUrl=url, MessageBody=message["Body"], MessageAttributes=_kept_attributes(message))
    except ClientError as error:  # of this message; the others must not wait for it
        why = f"{redriven.reason}; it could not be set aside: {error}{lacking(error, 'sqs', url)}"
        return replace(redriven, what="failed", reason=why)
    return replace(redriven, what="parked")


def _kept_attributes(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a copy: the redrive's, and the message's own, which say why Lambda or EventBridge
    failed. Beyond the limits of SQS on number and size, attributes that this module does not read are dropped first.
    """
    origins = {_FIRST_ID: _first_id(message)}
    if (queue := message.get("Attributes", {}).get(_MOVED)) is not None:
        origins[_FIRST_QUEUE] = queue
    texts = {name: {"DataType": "String", "StringValue": text} for name, text in origins.items()}
    attributes = {**message.get("MessageAttributes", {}), **texts}
    fitting: dict[str, Any] = {}
    left_bytes = _MESSAGE_MAX_BYTES - len(message["Body"].encode())
    for name in sorted(attributes, key=lambda name: name not in (*origins, _FIRST_QUEUE, _ERROR, _RULE)):
        value = attributes[name]
        content = value.get("StringValue", "").encode() or value.get("BinaryValue", b"")
        rest_bytes = left_bytes - len(name.encode()) - len(value["DataType"].encode()) - len(content)
        if rest_bytes >= 0 and len(fitting) < _ATTRIBUTES_MAX:
            fitting[name], left_bytes = value, rest_bytes
    return fitting
