"""The handler recognises envelopes of S3, SQS, Kinesis, EventBridge, and takes from each the identity of its run."""

from __future__ import annotations

import urllib.parse
from typing import Any

import pytest

from handler.input_errors import InputError
from handler.request.event import parse_event
from handler.request.trigger import Trigger, recognise
from handler.settings import read_settings

S3: dict[str, Any] = {
    "eventSource": "aws:s3",
    "s3": {"bucket": {"name": "in"}, "object": {"key": "a+b.csv", "versionId": "v1", "sequencer": "0055"}},
}
KINESIS: dict[str, Any] = {
    "eventSource": "aws:kinesis",
    "eventSourceARN": "arn:aws:kinesis:eu-west-1:1:stream/s",
    "eventID": "shardId-000000000000:4954",
}
EVENTBRIDGE: dict[str, Any] = {"detail-type": "Scheduled Event", "source": "aws.events", "id": "e-1", "detail": {}}


@pytest.mark.parametrize(
    ("event", "key"),
    [
        ({"Records": [S3]}, "s3:in/a+b.csv/v1/0055"),
        ({"Records": [KINESIS]}, "kinesis:arn:aws:kinesis:eu-west-1:1:stream/s/shardId-000000000000:4954"),
        ({"Records": [{"eventSource": "aws:sqs", "messageId": "m-1", "body": "text"}]}, "sqs:m-1"),
        (EVENTBRIDGE, "eventbridge:e-1"),
    ],
)
def test_an_event_has_an_identity_of_its_own(event: dict[str, Any], key: str) -> None:
    """It is the same on each delivery, and differs between services."""
    trigger = recognise(event)
    assert trigger is not None
    assert (trigger.identity, trigger.event, trigger.document) == (key, event, None)


def test_an_object_without_versions_has_an_identity() -> None:
    """Buckets without versioning send no version."""
    record = {"eventSource": "aws:s3", "s3": {"bucket": {"name": "in"}, "object": {"key": "a.csv"}}}
    trigger = recognise({"Records": [record]})
    assert trigger is not None
    assert trigger.identity == "s3:in/a.csv//"


def test_a_body_that_is_an_object_is_kept() -> None:
    """The caller decides whether it is a job."""
    trigger = recognise({"Records": [{"eventSource": "aws:sqs", "messageId": "m", "body": '{"a": 1}'}]})
    assert trigger is not None
    assert (trigger.document, trigger.document_path) == ({"a": 1}, "Records[0].body")


@pytest.mark.parametrize("body", ["[" * 100_000, '{"a":' * 100_000, '{"a":' * 400 + "1" + "}" * 400])
def test_a_body_that_is_nested_too_deeply_is_a_text(body: str) -> None:
    """It is not a job, and is not parsed here."""
    trigger = recognise({"Records": [{"eventSource": "aws:sqs", "messageId": "m", "body": body}]})
    assert trigger is not None
    assert (trigger.identity, trigger.document) == ("sqs:m", None)


def test_several_records_are_refused_with_the_remedy() -> None:
    """One record is one run."""
    with pytest.raises(InputError, match="set the batch size to 1"):
        recognise({"Records": [KINESIS, KINESIS]})


def test_anything_else_is_not_an_envelope() -> None:
    """The caller handles it."""
    assert recognise({"day": 1}) is None


@pytest.mark.parametrize("size", [3072, 3073, 200_000])
def test_an_identity_is_no_longer_than_an_encoded_key_of_s3(size: int) -> None:
    """The limit is in bytes; no service sends a longer one."""
    text = "\u00e9" * (size // 2) + "x" * (size % 2)
    s3 = {"bucket": {"name": "in"}, "object": {"key": text, "versionId": text, "sequencer": text}}
    for event in (
        {"Records": [{"eventSource": "aws:s3", "s3": s3}]},
        {"Records": [{"eventSource": "aws:sqs", "messageId": text, "body": "x"}]},
        {**EVENTBRIDGE, "id": text},
    ):
        if size > 3072:
            with pytest.raises(InputError, match="3072 are allowed"):
                recognise(event)
        else:
            assert recognise(event) is not None


# S3 allows 1,024 bytes for a key, and an event may write each as three characters.
LONGEST = urllib.parse.quote_plus("\u65e5" * 341 + "x")


@pytest.mark.parametrize(
    "event",
    [
        {"Records": [S3]},
        {"Records": [KINESIS]},
        EVENTBRIDGE,
        {**EVENTBRIDGE, "id": "-" * 50},
        {"Records": [{"eventSource": "aws:s3", "s3": {"bucket": {"name": "in"}, "object": {"key": LONGEST}}}]},
    ],
    ids=["s3", "kinesis", "eventbridge", "nothing to read", "the longest key"],
)
def test_the_key_of_every_run_is_one_that_a_caller_may_give(event: dict[str, Any]) -> None:
    """So it is valid wherever a run is named: in a clientToken, a continuation, the failure queue, a command."""
    trigger = recognise(event)
    assert trigger is not None
    key = trigger.run_key("f" * 64)
    assert key is not None
    settings = read_settings({"SW_CHECKPOINT_BUCKET": "checkpoints"})
    assert parse_event({"script": "s3://abc/d.py", "clientToken": key}, settings).client_token == key


def test_a_run_is_named_by_the_event_and_the_function_that_gets_it() -> None:
    """Two functions that one rule invokes are two runs; another delivery to the same function is the same run."""
    (one, other) = (Trigger({}, f"sqs:m-{number}") for number in (1, 2))
    keys = {one.run_key("f"), one.run_key("g"), other.run_key("f"), one.run_key(None)}
    assert len(keys) == 4
    assert Trigger({}, "sqs:m-1").run_key("f") == one.run_key("f")
    assert str(one.run_key("f")).startswith("sqs-m-1-")
    assert Trigger({}, None).run_key("f") is None


def test_two_events_of_one_version_are_two_runs() -> None:
    """Events of a restoration, of tags or of a lifecycle have no sequencer; their names distinguish them."""

    def key(name: str, **of_object: str) -> str | None:
        s3 = {"bucket": {"name": "in"}, "object": {"key": "a.csv", "versionId": "v", **of_object}}
        trigger = recognise({"Records": [{"eventSource": "aws:s3", "eventName": name, "s3": s3}]})
        return None if trigger is None else trigger.run_key("f")

    assert key("ObjectRestore:Post") == key("ObjectRestore:Post") != key("ObjectRestore:Completed")
    assert key("ObjectCreated:Put", sequencer="1") == key("ObjectCreated:Copy", sequencer="1")
