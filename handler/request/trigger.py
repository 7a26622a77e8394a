"""Envelopes of AWS services: the event in them, and its identity, which names the run.

Powertools' data classes check nothing. Its models do, but they refuse replayed or hand-made events for fields that no
run needs, do not say what to do, and slow down every cold start.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from handler.input_errors import InputError, described
from handler.request.json_depth import is_too_deep
from safewriter.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
_SQS: Final = "sqs:"
_EVENTBRIDGE: Final = "eventbridge:"
_REPLAYED: Final = "replay-name"
"""The field that EventBridge adds to an event replayed from an archive, whose id stays the same."""
_OTHERS: Final = re.compile(r"[^A-Za-z0-9._]+")


@dataclass(frozen=True, slots=True)
class Trigger:
    """An event that is not a job document. `identity` is the same on each delivery; None if the event has none.

    `document` is the JSON object in an SQS message's body, found at `document_path` of the event.
    """

    event: Mapping[str, Any]
    identity: str | None
    document: Mapping[str, Any] | None = None
    document_path: str = ""

    @property
    def content(self) -> str:
        """The hash of the event's content, the same on each delivery: without the fields that differ between
        deliveries.

        The content of an SQS message is its body: its receipt and counts change, and a redrive has only the body.
        """
        event = self.event
        if (self.identity or "").startswith(_SQS):
            event = {"body": event["Records"][0].get("body")}
        elif (self.identity or "").startswith(_EVENTBRIDGE):
            event = {name: value for name, value in event.items() if name != _REPLAYED}
        return hashlib.sha256(json.dumps(event, sort_keys=True).encode()).hexdigest()

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
    if "Records" in event:
        return _records(event)
    if "detail-type" in event and "source" in event:
        return Trigger(event, f"{_EVENTBRIDGE}{_text(event, 'id', 'id')}")
    return None


def _records(event: Mapping[str, Any]) -> Trigger:
    records = event["Records"]
    if not isinstance(records, list) or not records or not isinstance(records[0], dict):
        raise InputError("Records", f"must be a list with one record, not {described(records)}")
    source = records[0].get("eventSource")
    if not isinstance(source, str) or source not in _SOURCES:
        known = ", ".join(sorted(_SOURCES))
        raise InputError("Records[0].eventSource", f"{described(source)} is not a source that is known here ({known})")
    if len(records) != 1:
        raise InputError(
            "Records", f"holds {len(records)} records, and each is a run of its own; set the batch size to 1"
        )
    return _SOURCES[source](event, records[0])


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
        # Restored, tagged, expired: only the name distinguishes two events of one version then.
        sequencer = _text(record, "eventName", "Records[0].eventName")
    return Trigger(event, f"s3:{bucket}/{key}/{version}/{sequencer}")


def _sqs(event: Mapping[str, Any], record: Mapping[str, Any]) -> Trigger:
    key = f"{_SQS}{_text(record, 'messageId', 'Records[0].messageId')}"
    try:
        body = parsed(record.get("body", "").removeprefix(_BYTE_ORDER_MARK))
    except (AttributeError, TypeError, ValueError):
        body = None
    return Trigger(event, key, body if isinstance(body, dict) and not is_too_deep(body) else None, "Records[0].body")


def _kinesis(event: Mapping[str, Any], record: Mapping[str, Any]) -> Trigger:
    # eventID is "shardId-000000000006:sequence number"; the stream is in the ARN.
    stream = _text(record, "eventSourceARN", "Records[0].eventSourceARN")
    return Trigger(event, f"kinesis:{stream}/{_text(record, 'eventID', 'Records[0].eventID')}")


_SOURCES: Final[dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Trigger]]] = {
    "aws:s3": _s3,
    "aws:sqs": _sqs,
    "aws:kinesis": _kinesis,
}


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
