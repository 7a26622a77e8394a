"""Envelopes of AWS services: the event in them, and its identity, which names the run.

An envelope without an identity that a redelivery repeats is refused: each delivery of it would write again.

Powertools' data classes check nothing. Its models do, but they refuse replayed or hand-made events for fields that no
run needs, do not say what to do, and slow down every cold start.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from handler.input_errors import InputError, NoJob, described
from handler.request.json_depth import is_too_deep
from safewriter.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

__all__ = ["Trigger", "recognise"]

# S3 allows 1,024 bytes for an object key, and its events write a byte as up to three characters (%E3). No identity of
# other services is longer.
_TEXT_MAX_BYTES: Final = 3 * 1024
# Within the limits of a clientToken, so that every run key is a valid one: 31 readable characters, a hyphen, 128 bits.
_READABLE_MAX: Final = 31
_DIGEST_LENGTH: Final = 32
_BYTE_ORDER_MARK: Final = "\ufeff"
"""Some editors put it at the start of a file; JSON does not allow it, but a job document after it must be recognised.
"""
_REPLAYED: Final = "replay-name"
"""The field that EventBridge adds to an event replayed from an archive, whose id stays the same."""
_TASK: Final = frozenset({"input", "token", "taskToken"})
"""The fields by which a task of Step Functions wraps its state."""
_OTHERS: Final = re.compile(r"[^A-Za-z0-9._]+")


@dataclass(frozen=True, slots=True)
class Trigger:
    """An event that is not a job document. `identity` is the same on each delivery; None if the event has none.

    `document` is the JSON object in a message's text, found at `document_path` of the event. `same` is what of the
    event is the same on each delivery; None: all of it.
    """

    event: Mapping[str, Any]
    identity: str | None
    document: Mapping[str, Any] | None = None
    document_path: str = ""
    same: Mapping[str, Any] | None = None

    @property
    def content(self) -> str:
        """The hash of the event's content, the same on each delivery."""
        same = self.event if self.same is None else self.same
        return hashlib.sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()

    def run_key(self, function: str | None) -> str | None:
        """Return the key of the run that this event starts in a function; None if the event has no identity.

        An event starts different runs in different functions. The key is a valid clientToken for any identity.
        """
        if self.identity is None:
            return None
        readable = _OTHERS.sub("-", self.identity)[:_READABLE_MAX].strip("-")
        digest = hashlib.sha256(json.dumps([function or "", self.identity]).encode()).hexdigest()
        return f"{readable}-{digest[:_DIGEST_LENGTH]}"


def recognise(event: Mapping[str, Any]) -> Trigger | None:
    """Recognise an envelope; None for any other object, `InputError` for an envelope that cannot be one run."""
    _check_test(event)
    if "Records" in event:
        return _records(event)
    if "eventSource" in event:
        return _BATCHES[_known("eventSource", event["eventSource"], _BATCHES)](event)
    if "detail-type" in event and "source" in event:
        same = {name: value for name, value in event.items() if name != _REPLAYED}
        return Trigger(event, f"eventbridge:{_text(event, 'id', 'id')}", same=same)
    _check_anonymous(event)
    return None


def _check_test(event: Mapping[str, Any]) -> None:
    """Raise `NoJob` for the message by which S3 tries a new notification to a queue or a topic."""
    if event.get("Event") == "s3:TestEvent":
        raise NoJob("Event", "s3:TestEvent is S3's trial of a new notification, and no object has come")


def _check_anonymous(event: Mapping[str, Any]) -> None:
    """Refuse what repeats under another request id, and so would be another run."""
    context = event.get("requestContext")
    if isinstance(context, dict) and ("http" in context or "httpMethod" in event):
        raise InputError(
            "requestContext",
            "is of an HTTP request (function URL, API Gateway, load balancer): a repeated one is a new request, and"
            " would write again; invoke the function by Lambda's API with a job document and a clientToken",
        )
    if isinstance(event.get("input"), dict) and event.keys() <= _TASK:
        raise InputError(
            "input",
            "wraps the state of a task of Step Functions, each retry of which would write again; make the task's"
            " Payload a job document with a clientToken (docs/reference/event)",
        )


def _known(path: str, source: object, sources: Collection[str]) -> str:
    if not isinstance(source, str) or source not in sources:
        known = ", ".join(sorted({*_SOURCES, *_BATCHES}))
        raise InputError(
            path, f"{described(source)} is not a source that is known here ({known}): each redelivery would write again"
        )
    return source


def _records(event: Mapping[str, Any]) -> Trigger:
    records = event["Records"]
    if not isinstance(records, list) or not records or not isinstance(records[0], dict):
        raise InputError("Records", f"must be a list with one record, not {described(records)}")
    record = records[0]
    source = _known("Records[0].eventSource", record.get("eventSource", record.get("EventSource")), _SOURCES)
    if len(records) != 1:
        raise InputError(
            "Records", f"holds {len(records)} records, and each is a run of its own; set the batch size to 1"
        )
    return _SOURCES[source](event, record)


def _s3(event: Mapping[str, Any], record: Mapping[str, Any]) -> Trigger:
    path = "Records[0].s3"
    s3 = _object(record, "s3", path)
    bucket = _text(_object(s3, "bucket", f"{path}.bucket"), "name", f"{path}.bucket.name")
    file = _object(s3, "object", f"{path}.object")
    key = _text(file, "key", f"{path}.object.key")
    # Both may be missing: the version in a bucket without versioning, the sequencer in replayed and hand-made events.
    version, sequencer = (
        _text(file, name, f"{path}.object.{name}") if file.get(name) else "" for name in ("versionId", "sequencer")
    )
    if not sequencer and record.get("eventName"):
        # Restored, tagged, expired: only name and time distinguish two events of one version then.
        named = (name for name in ("eventName", "eventTime") if record.get(name))
        sequencer = "@".join(_text(record, name, f"Records[0].{name}") for name in named)
    return Trigger(event, f"s3:{bucket}/{key}/{version}/{sequencer}")


def _sqs(event: Mapping[str, Any], record: Mapping[str, Any]) -> Trigger:
    text = record.get("body")
    identity = f"sqs:{_text(record, 'messageId', 'Records[0].messageId')}"
    # The receipt and the counts of a message change, and a redrive has only the body.
    return _message(event, identity, text, "Records[0].body", {"body": text})


def _sns(event: Mapping[str, Any], record: Mapping[str, Any]) -> Trigger:
    path = "Records[0].Sns"
    sns = _object(record, "Sns", path)
    text = sns.get("Message")
    identity = f"sns:{_text(sns, 'MessageId', f'{path}.MessageId')}"
    # The rest is about the delivery: subscription, time, signature.
    same = {name: sns.get(name) for name in ("TopicArn", "Subject", "Message", "MessageAttributes")}
    return _message(event, identity, text, f"{path}.Message", same)


def _message(event: Mapping[str, Any], identity: str, text: object, path: str, same: Mapping[str, Any]) -> Trigger:
    document = _json_object(text)
    if document is not None and document.get("Type") == "Notification" and "TopicArn" in document:  # of SNS, in a queue
        document, path = _json_object(document.get("Message")), f"{path}.Message"
    if document is not None:
        _check_test(document)
    return Trigger(event, identity, document, path, same)


def _json_object(text: object) -> Mapping[str, Any] | None:
    try:
        value = parsed(text.removeprefix(_BYTE_ORDER_MARK))  # type: ignore[attr-defined]  # or AttributeError
    except (AttributeError, TypeError, ValueError):
        return None
    return value if isinstance(value, dict) and not is_too_deep(value) else None


def _stream(service: str, event: Mapping[str, Any], record: Mapping[str, Any]) -> Trigger:
    # eventID of Kinesis is "shardId-000000000006:sequence number"; the stream is in the ARN.
    stream = _text(record, "eventSourceARN", "Records[0].eventSourceARN")
    identity = f"{service}:{stream}/{_text(record, 'eventID', 'Records[0].eventID')}"
    # The rest is about the delivery: the role by which Lambda reads, for example.
    return Trigger(event, identity, same={service: record.get(service)})


def _kafka(event: Mapping[str, Any]) -> Trigger:
    # Lambda repeats a failed batch as a whole: https://docs.aws.amazon.com/lambda/latest/dg/with-msk-configure.html
    topics = _object(event, "records", "records")
    positions = sorted(_position(record) for name in topics for record in _batch(topics, name))
    if not positions:
        raise InputError("records", "holds no record")
    # A cluster without an ARN is known by its brokers, which may come in any order.
    cluster = event.get("eventSourceArn") or sorted(str(event.get("bootstrapServers")).split(","))
    first = "-".join(map(str, positions[0]))
    return Trigger(event, f"kafka:{first}:{json.dumps([cluster, positions])}", same={"records": topics})


def _batch(topics: Mapping[str, Any], name: str) -> list[Any]:
    batch = topics[name]
    if not isinstance(batch, list):
        raise InputError("records", f"must hold lists of records, not {described(batch)}")
    return batch


def _position(record: object) -> tuple[str, int, int]:
    match record:
        case {"topic": str() as topic, "partition": int() as partition, "offset": int() as offset}:
            return topic, partition, offset
    raise InputError("records", f"must hold records with topic, partition and offset, not {described(record)}")


_SOURCES: Final[dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Trigger]]] = {
    "aws:s3": _s3,
    "aws:sns": _sns,
    "aws:sqs": _sqs,
    "aws:dynamodb": partial(_stream, "dynamodb"),
    "aws:kinesis": partial(_stream, "kinesis"),
}
_BATCHES: Final[dict[str, Callable[[Mapping[str, Any]], Trigger]]] = {
    "aws:kafka": _kafka,
    "SelfManagedKafka": _kafka,
    "aws:SelfManagedKafka": _kafka,
}
"""By the source of a whole event: its records have none."""


def _object(parent: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
    value = parent.get(name)
    if not isinstance(value, dict):
        raise InputError(path, f"must be an object, not {described(value)}")
    return value


def _text(parent: Mapping[str, Any], name: str, path: str) -> str:
    value = parent.get(name)
    if not isinstance(value, str) or not value or not value.isprintable():
        raise InputError(path, f"must be a string that is not empty and can be printed, not {described(value)}")
    if (size := len(value.encode())) > _TEXT_MAX_BYTES:
        raise InputError(path, f"has {size} bytes; {_TEXT_MAX_BYTES} are allowed")
    return value
