from __future__ import annotations

from typing import Any

import pytest

from handler.trigger import KEY_MAX_BYTES, recognise
from handler.usage import UsageError

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
def test_the_key_is_the_event_s_own_identity(event: dict[str, Any], key: str) -> None:
    """It is the same on each delivery, and no two services' keys are equal."""
    trigger = recognise(event)
    assert trigger is not None
    assert (trigger.key, trigger.event, trigger.document) == (key, event, None)


def test_an_object_without_versions_has_a_key() -> None:
    """Buckets without versioning send no version."""
    record = {"eventSource": "aws:s3", "s3": {"bucket": {"name": "in"}, "object": {"key": "a.csv"}}}
    trigger = recognise({"Records": [record]})
    assert trigger is not None
    assert trigger.key == "s3:in/a.csv//"


def test_a_body_that_is_an_object_is_kept() -> None:
    """Whether it is a job is for the caller to say."""
    trigger = recognise({"Records": [{"eventSource": "aws:sqs", "messageId": "m", "body": '{"a": 1}'}]})
    assert trigger is not None
    assert (trigger.document, trigger.document_path) == ({"a": 1}, "Records[0].body")


@pytest.mark.parametrize("body", ["[" * 100_000, '{"a":' * 100_000, '{"a":' * 400 + "1" + "}" * 400])
def test_a_body_that_is_nested_too_deeply_is_a_text(body: str) -> None:
    """It is no job, and nothing is made of it here."""
    trigger = recognise({"Records": [{"eventSource": "aws:sqs", "messageId": "m", "body": body}]})
    assert trigger is not None
    assert (trigger.key, trigger.document) == ("sqs:m", None)


def test_several_records_are_refused_with_the_remedy() -> None:
    """One record is one run."""
    with pytest.raises(UsageError, match="set the batch size to 1"):
        recognise({"Records": [KINESIS, KINESIS]})


def test_anything_else_is_not_an_envelope() -> None:
    """It is left to the caller."""
    assert recognise({"day": 1}) is None


@pytest.mark.parametrize("size", [1024, 1025, 200_000])
def test_an_identity_is_no_longer_than_a_key_on_s3(size: int) -> None:
    """In bytes. It becomes a variable of the job, for which Linux has a limit, too."""
    text = "\u00e9" * (size // 2) + "x" * (size % 2)
    s3 = {"bucket": {"name": "in"}, "object": {"key": text, "versionId": text, "sequencer": text}}
    for event in (
        {"Records": [{"eventSource": "aws:s3", "s3": s3}]},
        {"Records": [{"eventSource": "aws:sqs", "messageId": text, "body": "x"}]},
        {**EVENTBRIDGE, "id": text},
    ):
        if size > 1024:
            with pytest.raises(UsageError, match="1024 are allowed"):
                recognise(event)
        else:
            trigger = recognise(event)
            assert trigger is not None
            assert trigger.key is not None
            assert len(trigger.key.encode()) <= KEY_MAX_BYTES
