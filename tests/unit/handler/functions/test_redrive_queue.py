"""A redrive's pass over the failure queue invokes failed runs again, parks hopeless messages, keeps its limits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from typer.testing import CliRunner

from handler.functions.redrive_queue import NotTakenError, Redriven, redrive_queue
from handler.outcome.state import State
from tests.support.command_line import app
from tests.unit.handler.functions.messages import (
    ERROR,
    SCHEDULE,
    UNREADABLE,
    failed,
    record,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Queue:
    def __init__(self, *bodies: str) -> None:
        self.sqs = boto3.client("sqs")
        self.url = self.sqs.create_queue(QueueName="failures")["QueueUrl"]
        self.sent: list[object] = []
        for body in bodies:
            self.sqs.send_message(QueueUrl=self.url, MessageBody=body)

    def redrive(self, send: Callable[[object], str | None] | None = None, messages_max: int = 100) -> list[Redriven]:
        return list(redrive_queue(self.sqs, self.url, send, attempts_max=3, messages_max=messages_max, wait_s=0))

    def parks(self) -> str:
        return str(self.sqs.create_queue(QueueName="parked")["QueueUrl"])

    def pass_with(self, parked_url: str, messages_max: int = 100) -> list[Redriven]:
        found = redrive_queue(
            self.sqs, self.url, self.send, attempts_max=3, messages_max=messages_max, parked_url=parked_url, wait_s=0
        )
        return list(found)

    def send(self, event: object) -> str:
        self.sent.append(event)
        return f"request-{len(self.sent)}"

    def visible(self) -> int:
        found = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=["All"])["Attributes"]
        return int(found["ApproximateNumberOfMessages"])


@pytest.fixture
def amazon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    with mock_aws():
        yield


@pytest.mark.usefixtures("amazon")
def test_what_was_sent_is_removed_and_the_rest_can_be_seen_again() -> None:
    """A run that has used up its attempts, and a hopeless one, stay for a person."""
    events = [{"clientToken": name} for name in "abc"]
    queue = Queue(
        record(events[0], failed()),
        record(events[1], failed(attempt=3)),
        record(events[2], failed(usage=True)),
        '{"requestContext": {}, "requestPayload": {}}',
    )
    found = queue.redrive(queue.send)
    assert sorted(one.what for one in found) == ["left", "left", "left", "sent"]
    assert {one.reason for one in found} >= {None, "it has had 3 attempts"}
    assert queue.sent == [{"continuation": {"count": 1, "token": "a", "event": events[0]}}]
    assert queue.visible() == 3


@pytest.mark.usefixtures("amazon")
def test_a_message_behind_hopeless_ones_is_reached() -> None:
    """A message that a redrive cannot help moves unchanged to the other queue, and does not count towards the pass."""
    bad = [
        UNREADABLE,
        record({"clientToken": "b"}, failed(attempt=3)),
        record({"clientToken": "c"}, failed(usage=True)),
        record({"clientToken": "d"}, failed(State.CANCELLED)),
    ] * 5
    queue = Queue(*bad, record({"clientToken": "a"}, failed()))
    parked = queue.parks()
    found = queue.pass_with(parked, messages_max=2)
    assert [one.what for one in found] == ["parked"] * len(bad) + ["sent"]
    assert all(one.reason for one in found[:-1])
    assert len(queue.sent) == 1
    assert queue.visible() == 0
    queue.url = parked
    bodies = [
        one["Body"]
        for _ in range(2)
        for one in queue.sqs.receive_message(QueueUrl=parked, MaxNumberOfMessages=10)["Messages"]
    ]
    assert sorted(bodies) == sorted(bad)


@pytest.mark.usefixtures("amazon")
def test_what_a_pass_sets_aside_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass must end in time; the next one continues."""
    monkeypatch.setattr("handler.functions.redrive_queue._PARKED_MAX", 10)
    queue = Queue(*[UNREADABLE] * 25)
    assert [len(queue.pass_with(queue.parks())) for _ in range(4)] == [10, 10, 5, 0]


@pytest.mark.usefixtures("amazon")
def test_a_message_is_in_a_queue_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass deletes it only once the other queue has it: if the delete fails, it is in both."""
    queue = Queue(UNREADABLE)
    parked = queue.parks()

    def break_down(**_: object) -> None:
        raise RuntimeError("the machine is gone")

    monkeypatch.setattr(queue.sqs, "delete_message", break_down)
    with pytest.raises(RuntimeError, match="the machine is gone"):
        queue.pass_with(parked)
    assert queue.visible() == 1
    queue.url = parked
    assert queue.visible() == 1


@pytest.mark.usefixtures("amazon")
def test_a_message_that_the_other_queue_does_not_take_is_in_nobody_s_way() -> None:
    """It stays, with the reason; the pass continues with the next message."""
    queue = Queue(UNREADABLE, record({"clientToken": "a"}, failed()))
    found = queue.pass_with(queue.url + "-gone")
    assert sorted(one.what for one in found) == ["failed", "sent"]
    assert "could not be set aside" in "".join(str(one.reason) for one in found)
    assert queue.visible() == 1


@pytest.mark.usefixtures("amazon")
def test_what_was_set_aside_can_be_redriven_as_the_same_run() -> None:
    """By hand, once Lambda accepts it: a message of the queue of jobs keeps the id there that names its run."""
    queue = Queue("a job")
    parked = queue.parks()

    def refuse(_event: object) -> str:
        raise NotTakenError("too large", for_ever=True)

    (one,) = redrive_queue(queue.sqs, queue.url, refuse, attempts_max=3, messages_max=9, parked_url=parked, wait_s=0)
    queue.url = parked
    assert [again.what for again in queue.redrive(queue.send)] == ["sent"]
    assert queue.sent == [{"Records": [{"eventSource": "aws:sqs", "messageId": one.message_id, "body": "a job"}]}]


@pytest.mark.usefixtures("amazon")
@pytest.mark.parametrize("others", [0, 8, 9])
def test_a_message_s_attributes_go_with_it(others: int) -> None:
    """They say that Lambda put the event there, and why; SQS allows ten attributes."""
    queue = Queue()
    text = {"DataType": "String", "StringValue": "x"}
    attributes: Any = {
        **{f"a{n}": text for n in range(others)},
        "ErrorCode": {"DataType": "Number", "StringValue": "200"},
    }
    queue.sqs.send_message(QueueUrl=queue.url, MessageBody='{"day": 1}', MessageAttributes=attributes)
    parked = queue.parks()
    assert [one.what for one in queue.pass_with(parked)] == ["parked"]
    (found,) = queue.sqs.receive_message(QueueUrl=parked, MessageAttributeNames=["All"])["Messages"]
    assert found["MessageAttributes"].keys() >= {"ErrorCode", "SoalMessageId"}
    assert len(found["MessageAttributes"]) == min(others + 2, 10)


@pytest.mark.usefixtures("amazon")
def test_a_dry_run_sends_nothing_and_removes_nothing() -> None:
    """It reports what it would send."""
    queue = Queue(record({"clientToken": "t"}, failed()))
    told = CliRunner().invoke(app, ["redrive", "--queue-url", queue.url, "--function", "f", "--dry-run", "--json"])
    assert [(one["what"], one["attempt"], one["requestId"]) for one in json.loads(told.stdout)] == [("sent", 1, None)]
    assert (told.exit_code, queue.visible()) == (0, 1)


@pytest.mark.usefixtures("amazon")
@pytest.mark.parametrize("event", [{"script": "s3://scripts/job.py"}, SCHEDULE, "s3://scripts/job.py"])
def test_the_event_of_a_failed_execution_without_a_token_stays(event: object) -> None:
    """As another run it would write its batch again."""
    sqs = boto3.client("sqs", region_name="us-east-1")
    url = sqs.create_queue(QueueName="failures")["QueueUrl"]
    error: Any = {"ErrorCode": {"DataType": "Number", "StringValue": "200"}}
    sqs.send_message(QueueUrl=url, MessageBody=json.dumps(event), MessageAttributes=error)

    def send(event: object) -> str:
        raise AssertionError(event)

    (left,) = redrive_queue(sqs, url, send, attempts_max=3, messages_max=10, wait_s=0)
    assert left.what == "left"
    assert "soal runs list" in str(left.reason)


@pytest.mark.usefixtures("amazon")
def test_an_event_that_lambda_does_not_take_stays() -> None:
    """The number of messages in a pass is limited."""

    def refuse(_event: object) -> str:
        raise NotTakenError("throttled")

    queue = Queue(*(record({"clientToken": name}, failed()) for name in "ab"))
    assert [(one.what, one.reason) for one in queue.redrive(refuse, messages_max=1)] == [("failed", "throttled")]
    assert queue.visible() == 2


@pytest.mark.usefixtures("amazon")
@pytest.mark.parametrize(
    "body",
    [
        "[" * 100_000,
        '{"requestContext":{},"requestPayload":' + '{"a":' * 30_000,
        record("PAYLOAD", None).replace('"PAYLOAD"', "[" * 400 + "]" * 400),
        record({"day": 3}, {"errorMessage": "[" * 100_000}),
        '{"detail-type":"x","detail":' + "[" * 400 + "]" * 400 + "}",
    ],
    ids=["brackets", "objects", "a payload", "an answer", "a rule's event"],
)
def test_a_message_that_is_nested_too_deeply_stands_alone(body: str) -> None:
    """The other messages in the queue are redriven."""
    queue = Queue(record({"day": 1}, None), body, record({"day": 2}, None))
    found = queue.redrive(queue.send)
    assert len(found) == 3
    assert {one.what for one in found} <= {"sent", "left"}
    assert {event["continuation"]["event"]["day"] for event in queue.sent} >= {1, 2}  # type: ignore[index]


@pytest.mark.slow
@pytest.mark.usefixtures("amazon")
def test_a_dry_run_shows_a_message_that_cannot_be_read_beside_the_others() -> None:
    """By hand, as in the stack's own function, the pass gives its reason and continues."""
    queue = Queue(record({"clientToken": "t"}, failed()))
    queue.sqs.send_message(QueueUrl=queue.url, MessageBody='{"Records": 0}', MessageAttributes=ERROR)
    told = CliRunner().invoke(app, ["redrive", "--queue-url", queue.url, "--function", "f", "--dry-run", "--json"])
    assert sorted(one["what"] for one in json.loads(told.stdout)) == ["left", "sent"]
    assert (told.exit_code, queue.visible()) == (0, 2)


@pytest.mark.usefixtures("amazon")
def test_an_error_of_the_queue_leaves_nothing_hidden_and_nothing_untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier messages that were sent are reported, and unprocessed ones become visible at once."""
    queue = Queue(*(record({"clientToken": name}, failed()) for name in "abc"))
    monkeypatch.setattr(queue.sqs, "delete_message", lambda **_: (_ for _ in ()).throw(RuntimeError("no network")))
    told: list[Redriven] = []
    with pytest.raises(RuntimeError, match="no network"):
        told.extend(redrive_queue(queue.sqs, queue.url, queue.send, attempts_max=3, messages_max=100, wait_s=0))
    assert [one.what for one in told] == ["sent"]
    assert queue.visible() == 3


def test_by_hand_an_error_of_the_queue_leaves_the_table_of_what_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, an operator would not know which runs were started again."""

    def passing(*_: object, **__: object) -> Iterator[Redriven]:
        yield Redriven("m-1", "sent", None, 1, "request")
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DeleteMessage")

    monkeypatch.setattr("soal.commands.redrive.redrive_queue", passing)
    told = CliRunner().invoke(app, ["redrive", "--queue-url", "http://127.0.0.1:1/q", "--function", "f", "--json"])
    assert [one["messageId"] for one in json.loads(told.stdout)] == ["m-1"]
    assert "DeleteMessage" in str(told.exception)
