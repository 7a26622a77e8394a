"""The handler recognises envelopes of AWS's services, and takes from each the identity of its run, or refuses it."""

from __future__ import annotations

import copy
import json
import urllib.parse
from typing import TYPE_CHECKING, Any

import pytest
from aws_lambda_powertools.utilities.parser import models

from handler.input_errors import InputError, NoJob
from handler.request.event import parse_event
from handler.request.trigger import Trigger, recognise
from handler.settings import read_settings
from tests.support import service_events

if TYPE_CHECKING:
    from pydantic import BaseModel

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
    """Events of a restoration, of tags or of a lifecycle have no sequencer; names and times distinguish them."""

    def key(name: str, time: str = "2026-11-27T03:00:00.000Z", **of_object: str) -> str | None:
        s3 = {"bucket": {"name": "in"}, "object": {"key": "a.csv", "versionId": "v", **of_object}}
        record = {"eventSource": "aws:s3", "eventName": name, "eventTime": time, "s3": s3}
        trigger = recognise({"Records": [record]})
        return None if trigger is None else trigger.run_key("f")

    assert key("ObjectRestore:Post") == key("ObjectRestore:Post") != key("ObjectRestore:Completed")
    assert key("ObjectTagging:Put") != key("ObjectTagging:Put", "2026-11-27T04:00:00.000Z")
    assert key("ObjectCreated:Put", sequencer="1") == key("ObjectCreated:Copy", sequencer="1")


def test_a_record_of_a_stream_is_the_same_whoever_reads_it() -> None:
    """A redelivery may come by another role, once the owner has mended the first one's rights."""
    first, later = (
        recognise(
            {"Records": [{**KINESIS, "invokeIdentityArn": f"arn:aws:iam::1:role/{role}", "kinesis": {"data": "eA=="}}]}
        )
        for role in ("one", "another")
    )
    assert first is not None
    assert later is not None
    assert first.content == later.content


PUT = json.dumps(service_events.s3())
TEST = json.dumps(service_events.s3_test())
IDENTIFIED: dict[str, dict[str, Any]] = {
    "S3": service_events.s3(),
    "SNS": service_events.sns("Hello from SNS!"),
    "S3 by SNS": service_events.sns(PUT),
    "SQS": service_events.sqs("Test message."),
    "S3 by SQS": service_events.sqs(PUT),
    "S3 by SNS and SQS": service_events.sqs(service_events.notification(PUT)),
    "DynamoDB": service_events.dynamodb(1),
    "Kinesis": service_events.kinesis(),
    "MSK": service_events.msk(p0=[15, 16], p1=[7]),
    "Kafka": service_events.kafka(p0=[15, 16], p1=[7]),
    "EventBridge Scheduler": service_events.scheduler(),
}
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "several messages": (service_events.sqs("a", "b"), "Records", "set the batch size to 1"),
    "several changes": (service_events.dynamodb(1, 2), "Records", "set the batch size to 1"),
    "Amazon MQ": (service_events.mq(), "eventSource", "each redelivery would write again"),
    "function URL": (service_events.function_url(), "requestContext", "a clientToken"),
    "load balancer": (service_events.load_balancer(), "requestContext", "a clientToken"),
    "Step Functions": (service_events.task({"entryPoint": "s3://scripts/job.py"}), "input", "a clientToken"),
    "no record of Kafka": (service_events.msk(), "records", "no record"),
    "Kafka without a list": ({"eventSource": "aws:kafka", "records": {"t-0": {}}}, "records", "lists of records"),
    "Kafka without an offset": ({"eventSource": "aws:kafka", "records": {"t-0": [{}]}}, "records", "offset"),
}


def _key(event: dict[str, Any]) -> str:
    trigger = recognise(event)
    assert trigger is not None
    key = trigger.run_key("f")
    assert key is not None
    return key


@pytest.mark.parametrize(
    ("event", "model"),
    [
        (service_events.s3(), models.S3Model),
        (service_events.sns(PUT), models.SnsModel),
        (service_events.sqs("a", "b"), models.SqsModel),
        (service_events.dynamodb(1, 2), models.DynamoDBStreamModel),
        (service_events.kinesis(), models.KinesisDataStreamModel),
        (service_events.msk(p0=[15]), models.KafkaMskEventModel),
        (service_events.kafka(p0=[15]), models.KafkaSelfManagedEventModel),
        (service_events.function_url(), models.LambdaFunctionUrlModel),
        (service_events.load_balancer(), models.AlbModel),
        (service_events.scheduler(), models.EventBridgeModel),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_events_of_these_tests_have_the_services_forms(event: dict[str, Any], model: type[BaseModel]) -> None:
    """The models of Powertools accept them."""
    model.model_validate(event)


def test_each_event_names_a_run_of_its_own() -> None:
    """No two services have one key, which begins with what people can read; a message is named by its own id."""
    keys = {name: _key(event) for name, event in IDENTIFIED.items() if " by " not in name}
    assert len(set(keys.values())) == len(keys)
    assert keys["MSK"].startswith("kafka-mytopic-0-15-")
    assert keys["SNS"] == _key(IDENTIFIED["S3 by SNS"])
    assert keys["SNS"].startswith("sns-95df01b4-ee98-5cb9-9903-")


@pytest.mark.parametrize("event", IDENTIFIED.values(), ids=IDENTIFIED.keys())
def test_a_redelivery_is_the_same_run(event: dict[str, Any]) -> None:
    """What differs between two deliveries is in neither key nor content: receipts, counts, signatures, brokers."""
    again = copy.deepcopy(event)
    if "bootstrapServers" in again:
        again["bootstrapServers"] = ",".join(reversed(again["bootstrapServers"].split(",")))
    for record in again.get("Records", ()):
        if "receiptHandle" in record:
            record.update(receiptHandle="another", attributes={"ApproximateReceiveCount": "2"})
        if "Sns" in record:
            record["Sns"].update(Signature="another", SigningCertUrl="https://another")
    first, second = recognise(event), recognise(again)
    assert first is not None
    assert second is not None
    assert (first.run_key("f"), first.content) == (second.run_key("f"), second.content)


@pytest.mark.parametrize("of", [service_events.msk, service_events.kafka])
def test_a_batch_of_kafka_is_named_by_each_of_its_records(of: Any) -> None:
    """One more, one less, another partition, topic or cluster: another batch, in whatever order the topics come."""
    batch = of(p0=[15, 16], p1=[7])
    other_topic = json.loads(json.dumps(batch).replace("mytopic", "theirs"))
    other_cluster = {**batch, "bootstrapServers": "other:9092", "eventSourceArn": "arn:aws:kafka:x:1:cluster/other"}
    batches = [
        batch,
        of(p0=[15, 16, 17], p1=[7]),
        of(p0=[15, 17], p1=[7]),
        of(p0=[15], p1=[7]),
        of(p0=[15, 16], p2=[7]),
        other_topic,
        other_cluster,
    ]
    assert len({_key(one) for one in batches}) == len(batches)
    assert _key(of(p1=[7], p0=[15, 16])) == _key(batch)


@pytest.mark.parametrize(("event", "field", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_an_event_that_no_redelivery_repeats_is_refused(event: dict[str, Any], field: str, reason: str) -> None:
    """By name, with the reason: a run under the request's id would write again with each delivery."""
    with pytest.raises(InputError, match=reason) as caught:
        recognise(event)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "event",
    [
        service_events.s3_test(),
        service_events.sns(TEST),
        service_events.sqs(TEST),
        service_events.sqs(service_events.notification(TEST)),
    ],
    ids=["alone", "by SNS", "by SQS", "by both"],
)
def test_the_test_of_a_notification_asks_for_no_job(event: dict[str, Any]) -> None:
    """S3 sends it when a notification is set up, and no object has come."""
    with pytest.raises(NoJob):
        recognise(event)


@pytest.mark.parametrize(
    ("event", "path"),
    [
        (service_events.sns('{"script": "s3://abc/d.py"}'), "Records[0].Sns.Message"),
        (service_events.sqs(service_events.notification('{"script": "s3://abc/d.py"}')), "Records[0].body.Message"),
    ],
    ids=["SNS", "SNS by SQS"],
)
def test_a_message_of_a_topic_may_hold_a_job(event: dict[str, Any], path: str) -> None:
    """Its object is kept, as that of a message of a queue is."""
    trigger = recognise(event)
    assert trigger is not None
    assert (trigger.document, trigger.document_path) == ({"script": "s3://abc/d.py"}, path)


@pytest.mark.parametrize("event", [{"input": "s3://in/a.csv"}, {"input": {"a": 1}, "day": 1}, {"requestContext": {}}])
def test_an_object_that_only_resembles_an_envelope_is_none(event: dict[str, Any]) -> None:
    """The function's script gets it."""
    assert recognise(event) is None
