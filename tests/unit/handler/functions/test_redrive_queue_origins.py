"""A redrive trusts a message of the failure queue by its origin: forged, foreign and dead-lettered ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from handler.functions.redrive_queue import NotTakenError, Redriven, redrive_queue
from tests.unit.handler.functions.messages import (
    ERROR,
    FROM_JOBS,
    JOB,
    MESSAGE_MAX_BYTES,
    RULE,
    SCHEDULE,
    SQS,
    STATED,
    UNREADABLE,
    record,
)
from tests.unit.handler.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Queues:
    """SQS in memory, with its size limit and its attribute of a message that it has moved from another queue."""

    def __init__(self) -> None:
        self.messages: dict[str, list[dict[str, Any]]] = {"failures": [], "parked": []}
        self.hidden: set[str] = set()
        self.jobs_arn: str | None = FROM_JOBS["DeadLetterQueueSourceArn"]
        self.sent: list[object] = []

    def put(self, body: str, attributes: Any = None, system: Any = None, url: str = "failures") -> str:
        attributes = attributes or {}
        texts = [text for name, value in attributes.items() for text in (name, *value.values())]
        if len("".join((body, *texts)).encode()) > MESSAGE_MAX_BYTES:
            raise ClientError({"Error": {"Code": "InvalidParameterValue", "Message": "too long"}}, "SendMessage")
        name = f"m-{sum(map(len, self.messages.values()))}-{len(self.hidden)}"
        message = {"MessageId": name, "ReceiptHandle": name, "Body": body, "MessageAttributes": attributes}
        self.messages[url].append({**message, "Attributes": system or {}})
        return name

    def send_message(self, **given: Any) -> None:
        self.put(given["MessageBody"], given["MessageAttributes"], url=given["QueueUrl"])

    def receive_message(self, **given: Any) -> dict[str, Any]:
        seen = [one for one in self.messages[given["QueueUrl"]] if one["MessageId"] not in self.hidden]
        seen = seen[: given["MaxNumberOfMessages"]]
        self.hidden |= {one["MessageId"] for one in seen}
        asked = given["AttributeNames"]
        return {
            "Messages": [
                {**one, "Attributes": {k: v for k, v in one["Attributes"].items() if k in asked}} for one in seen
            ]
        }

    def delete_message(self, **given: Any) -> None:
        queue = self.messages[given["QueueUrl"]]
        queue[:] = [one for one in queue if one["ReceiptHandle"] != given["ReceiptHandle"]]

    def change_message_visibility(self, **given: Any) -> None:
        self.hidden.discard(given["ReceiptHandle"])

    def send(self, event: object) -> str:
        if len(json.dumps(event)) > MESSAGE_MAX_BYTES:
            raise NotTakenError("RequestTooLargeException", for_ever=True)
        self.sent.append(event)
        return "request"

    def redrive(self, url: str = "failures", messages_max: int = 100, parked_url: str | None = "parked") -> list[str]:
        return [one.what for one in self.passing(url, messages_max, parked_url)]

    def passing(self, url: str, messages_max: int, parked_url: str | None) -> Iterator[Redriven]:
        return redrive_queue(
            self,
            url,
            self.send,
            attempts_max=3,
            messages_max=messages_max,
            parked_url=parked_url,
            jobs_arn=self.jobs_arn,
            wait_s=0,
        )


@pytest.mark.parametrize("origin", [ERROR, {}], ids=["of an execution", "a record"])
@pytest.mark.parametrize(
    "event",
    [
        {"Records": 0},
        {"Records": [{"EventSource": "aws:sns", "Sns": {"Message": "x"}}]},
        {"Records": [{"eventSource": "aws:sqs", "messageId": "a"}] * 2},
        {"detail-type": "x", "source": "y"},
        {"continuation": {"count": 0}},
        {"continuation": {"count": 1, "token": "t", "event": {"continuation": 1}}},
        {"clientToken": "a key that no run has"},
        {"clientToken": "\ud800"},
    ],
)
def test_an_event_that_the_handler_refuses_is_set_aside_and_the_pass_goes_on(event: object, origin: Any) -> None:
    """Otherwise any caller could end every pass with it, for as long as the queue keeps the message."""
    queues = Queues()
    queues.put(json.dumps(event) if origin else record(event, None), origin)
    queues.put(JOB, None, FROM_JOBS)
    (first, second) = queues.passing("failures", 100, "parked")
    assert (first.what, second.what) == ("parked", "sent")
    assert "must be changed first" in str(first.reason)
    assert queues.messages["failures"] == []


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"requestContext": [["a", "b"]], "requestPayload": {"day": 1}}),
        json.dumps({"requestContext": {"requestId": 1}, "requestPayload": {"day": 1}}),
        json.dumps({"requestContext": {"requestId": "r"}, "requestPayload": SCHEDULE}),
        json.dumps({"requestContext": {"requestId": "r", "functionArn": ["a"]}, "requestPayload": SQS}),
        '{"requestContext": {}, "requestPayload": ' + "9" * 5_000 + "}",
    ],
)
def test_a_record_that_does_not_name_the_run_is_set_aside(body: str) -> None:
    """A key without the function's name, or from something other than a text, would name another run."""
    queues = Queues()
    queues.put(body)
    assert (queues.redrive(), queues.sent) == (["parked"], [])


@pytest.mark.parametrize("size", [MESSAGE_MAX_BYTES, MESSAGE_MAX_BYTES - 60, MESSAGE_MAX_BYTES - 1_023])
@pytest.mark.parametrize("system", [FROM_JOBS, {}], ids=["from the queue of jobs", "from nowhere"])
def test_messages_of_the_largest_size_leave_the_way_of_others(size: int, system: Any) -> None:
    """Lambda accepts none of them, and a copy with one more attribute may be too large for SQS."""
    queues = Queues()
    for _ in range(3):
        queues.put(JOB.ljust(size), None, system)
    queues.put(JOB, None, FROM_JOBS)
    assert queues.redrive(messages_max=1) == ["parked", "parked", "parked", "sent"]
    assert (len(queues.messages["parked"]), queues.messages["failures"]) == (3, [])
    assert set(queues.redrive("parked", parked_url=None)) == {"left"}
    assert len(queues.sent) == 1


@pytest.mark.parametrize("jobs_arn", [FROM_JOBS["DeadLetterQueueSourceArn"], None])
@pytest.mark.parametrize("attributes", [{}, ERROR, RULE, {"SoalQueue": STATED}], ids=["none", "error", "rule", "queue"])
def test_what_another_queue_s_dead_letters_bring_starts_nothing(attributes: Any, jobs_arn: str | None) -> None:
    """Any queue of the account could use the failure queue as its dead-letter queue, and its senders are not callers.
    Whatever their attributes say, the message is set aside, and a redrive of that queue leaves it there.
    """
    queues = Queues()
    queues.jobs_arn = jobs_arn
    queues.put(JOB, attributes, {"DeadLetterQueueSourceArn": "arn:aws:sqs:us-east-1:123456789012:theirs"})
    (first,) = queues.passing("failures", 100, "parked")
    assert first.what == "parked"
    assert "SQS has moved it from arn:aws:sqs:us-east-1:123456789012:theirs" in str(first.reason)
    assert queues.redrive("parked", parked_url=None) == ["left"]
    assert queues.sent == []


def test_attributes_that_leave_no_room_stay_behind() -> None:
    """The attributes that name the run take precedence."""
    queues = Queues()
    large = {"DataType": "String", "StringValue": "x" * (MESSAGE_MAX_BYTES - 1_000)}
    first = queues.put("x" * 900, {"a": large}, FROM_JOBS)
    queues.sent, send = [], queues.send
    queues.send = lambda event: (_ for _ in ()).throw(NotTakenError("no", for_ever=True))  # type: ignore[method-assign]
    assert queues.redrive() == ["parked"]
    queues.send = send  # type: ignore[method-assign]
    assert queues.redrive("parked", parked_url=None) == ["sent"]
    assert queues.sent == [{"Records": [{"eventSource": "aws:sqs", "messageId": first, "body": "x" * 900}]}]


def test_a_message_that_cannot_be_set_aside_takes_no_other_s_place() -> None:
    """It counts towards the messages that the pass sets aside, not towards those that it redrives."""
    queues = Queues()
    for _ in range(3):
        queues.put(UNREADABLE)
    queues.put(JOB, None, FROM_JOBS)
    queues.send_message = lambda **_: (_ for _ in ()).throw(  # type: ignore[method-assign]
        ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "SendMessage")
    )
    assert queues.redrive(messages_max=1) == ["failed", "failed", "failed", "sent"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        SCHEDULE,
        {"requestContext": {"requestId": "stolen"}, "requestPayload": {"day": 1}},
        {"continuation": {"count": 1, "token": "stolen", "event": {"day": 1}}},
        {"script": "s3://scripts/job.py"},
        {"script": "s3://scripts/job.py", "clientToken": "t"},
        "hello",
    ],
    ids=["an event of a rule", "a record", "a continuation", "a job", "a job with a token", "a text"],
)
@pytest.mark.parametrize(
    "attributes", [{}, ERROR, RULE, {"SoalMessageId": RULE["RULE_ARN"]}], ids=lambda given: str(list(given))
)
def test_a_message_of_the_queue_of_jobs_is_redriven_as_the_run_that_it_was(
    tmp_path: Path, body: object, attributes: Any
) -> None:
    """This holds whatever its body and its sender's attributes say: SQS reports the origin, even after it was set
    aside. As an event of a rule it would get another key, and write its rows again.
    """
    settings = {"SOAL_ENTRY_POINT": "s3://scripts/job.py", "AWS_LAMBDA_FUNCTION_NAME": "jobs"}
    queues, text = Queues(), json.dumps(body)
    first_id = queues.put(text, attributes, FROM_JOBS)
    world = World(tmp_path)
    first = world.handle({"Records": [{"eventSource": "aws:sqs", "messageId": first_id, "body": text}]}, **settings)
    send = queues.send
    queues.send = lambda event: (_ for _ in ()).throw(NotTakenError("no", for_ever=True))  # type: ignore[method-assign]
    assert queues.redrive() == ["parked"]
    queues.send = send  # type: ignore[method-assign]
    assert queues.redrive("parked", parked_url=None) == ["sent"]
    world.request_id = "another request"
    again = world.handle(queues.sent[0], **settings)
    assert (again.client_token, again.attempt) == (first.client_token, 2)
    assert len(world.stored("runs/")) == 1


def test_an_event_that_nobody_says_where_it_is_from_is_not_redriven() -> None:
    """The run key is the event's own if a rule sent it, but the message's if the queue of jobs did."""
    queues = Queues()
    queues.put(json.dumps(SCHEDULE))
    queues.put(json.dumps(SCHEDULE), RULE)
    (first, second) = queues.passing("failures", 100, "parked")
    assert (first.what, second.what, queues.sent) == ("parked", "sent", [SCHEDULE])
    assert "soal runs list" in str(first.reason)
