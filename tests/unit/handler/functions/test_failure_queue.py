from __future__ import annotations

import json
import urllib.parse
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from typer.testing import CliRunner

from handler.functions.failure_queue import NotTakenError, Redriven, redrive_queue
from handler.functions.replay import Origin, replay_of
from handler.outcome.result import ErrorResult, JobFailed, deliver
from handler.outcome.state import State
from handler.request.continuation import Continuation
from handler.request.trigger import recognise
from tests.support.command_line import app
from tests.unit.handler.outcome.test_result import result
from tests.unit.handler.world import UNKNOWN, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SCHEDULE = {"source": "aws.events", "detail-type": "Scheduled Event", "id": "e-1", "detail": {}}
SQS = {"Records": [{"eventSource": "aws:sqs", "messageId": "m-1", "body": "hello"}]}


ARN = "arn:aws:lambda:us-east-1:123456789012:function:jobs:live"
LONG_KEY = urllib.parse.quote_plus("\u65e5" * 115) + ".csv"
S3 = {"Records": [{"eventSource": "aws:s3", "s3": {"bucket": {"name": "in"}, "object": {"key": LONG_KEY}}}]}


def record(event: object, answer: object, request_id: str = "request") -> str:
    """What Lambda puts into the queue when the last retry of an asynchronous invocation has failed."""
    context = {"requestId": request_id, "functionArn": ARN, "condition": "RetriesExhausted"}
    return json.dumps({"version": "1.0", "requestContext": context, "requestPayload": event, "responsePayload": answer})


def failed(state: State = State.TIMED_OUT, attempt: int = 1, **error: Any) -> dict[str, str]:
    fault = ErrorResult(**{"type": "E", "message": "m", "field": None, "retryable": False, "usage": False, **error})
    answer = result(state, fault).model_copy(update={"attempt": attempt})
    return {"errorType": "JobFailed", "errorMessage": json.dumps(answer.document())}


@pytest.mark.slow
@pytest.mark.parametrize(
    "event",
    [
        {"script": "s3://scripts/job.py", "clientToken": "t"},
        {"script": "s3://scripts/job.py"},
        "s3://scripts/job.py",
        {"day": 1},
        SCHEDULE,
        SQS,
        S3,
    ],
    ids=["a token", "no token", "a script", "any object", "a schedule", "a queue", "a long key on S3"],
)
def test_a_failure_that_is_replayed_is_the_same_run(tmp_path: Path, event: object) -> None:
    """On the handler: whatever names the run, the replay of the payload that Lambda keeps is its second attempt."""
    world = World(tmp_path)
    settings = {"SOAL_ENTRY_POINT": "s3://scripts/job.py", "AWS_LAMBDA_FUNCTION_NAME": "jobs"}
    world.reports = (UNKNOWN,)
    with pytest.raises(JobFailed) as raised:
        deliver(world.handle(event, **settings), None)
    replay = replay_of(record(event, {"errorType": "JobFailed", "errorMessage": str(raised.value)}), "m-9")
    assert (replay.attempt, replay.hopeless) == (1, None)
    world.reports = ()
    world.request_id = "another request"
    again = world.handle(replay.event, **settings)
    assert (again.state, again.attempt, len(world.stored("runs/"))) == ("SUCCESS", 2, 1)


def test_one_event_that_failed_in_two_functions_is_redriven_as_their_two_runs() -> None:
    """The record says which function it was; the redrive, and an operator's machine, have names of their own."""
    first = replay_of(record(SCHEDULE, None), "m-1")
    other = replay_of(record(SCHEDULE, None).replace(":jobs:", ":others:"), "m-1")
    keys = [replay.event["continuation"]["token"] for replay in (first, other)]  # type: ignore[index]
    trigger = recognise(SCHEDULE)
    assert trigger is not None
    assert keys == [trigger.run_key("jobs"), trigger.run_key("others")]
    assert replay_of(record(SCHEDULE, None).replace(":live", ""), "m-1") == first


@pytest.mark.parametrize("context", [["a"], "text", 1, None, {}])
def test_a_record_without_what_names_its_run_cannot_be_read(context: object) -> None:
    """It is left in the queue, and those beside it are invoked with."""
    body = json.dumps({"requestContext": context, "requestPayload": {"day": 1}})
    with pytest.raises((ValueError, KeyError, TypeError)):
        replay_of(body, "m-1")


def test_an_event_twice_at_once_is_one_run(tmp_path: Path) -> None:
    """Lambda may deliver an asynchronous event twice, and both have one request id."""
    world = World(tmp_path)
    event = {"script": "s3://scripts/job.py"}
    first = world.handle(event)
    assert world.handle(event).previous_run_id == first.run_id
    assert len(world.stored("runs/")) == 1


def test_a_run_that_lambda_has_killed_is_tried_again() -> None:
    """There is no result, so nothing speaks against it."""
    replay = replay_of(record({"clientToken": "t"}, {"errorMessage": "Task timed out after 900.00 seconds"}), "m-1")
    assert (replay.attempt, replay.hopeless) == (1, None)


def test_a_run_that_is_killed_each_time_is_not_tried_for_ever() -> None:
    """Its replays are counted in the event, since no result tells."""
    event: object = {"script": "s3://scripts/job.py", "clientToken": "t"}
    for attempt in (1, 2, 3):
        replay = replay_of(record(event, {"errorMessage": "Task timed out after 900.00 seconds"}), "m-1")
        assert replay.attempt == attempt
        event = replay.event


def test_a_message_of_the_queue_of_jobs_has_its_own_id_again() -> None:
    """As the function would have got it; an event of a rule stays as it is."""
    body = json.dumps({"script": "s3://scripts/job.py"})
    (record_again,) = replay_of(body, "m-1").event["Records"]  # type: ignore[index]
    assert (record_again["messageId"], record_again["body"]) == ("m-1", body)
    assert replay_of("not json", "m-1").event == {"Records": [{**record_again, "body": "not json"}]}
    assert replay_of(json.dumps(SCHEDULE), "m-1", Origin.RULE).event == SCHEDULE


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(failed(usage=True), "must be changed first: m"), (failed(State.CANCELLED), "it was cancelled on request")],
)
def test_what_cannot_end_otherwise_is_hopeless(answer: object, reason: str) -> None:
    """A usage error, and what somebody has cancelled."""
    assert str(replay_of(record({"clientToken": "t"}, answer), "m-1").hopeless).endswith(reason)


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
    """A run that has had its attempts, and one that is hopeless, stay for somebody to look."""
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


UNREADABLE = '{"requestContext": {}, "requestPayload": {}}'


@pytest.mark.usefixtures("amazon")
def test_a_message_behind_hopeless_ones_is_reached() -> None:
    """What no redrive can help goes into another queue, whole, and does not count among what a pass looks at."""
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
    """It has to end in time; the next one goes on."""
    monkeypatch.setattr("handler.functions.failure_queue._PARKED_MAX", 10)
    queue = Queue(*[UNREADABLE] * 25)
    assert [len(queue.pass_with(queue.parks())) for _ in range(4)] == [10, 10, 5, 0]


@pytest.mark.usefixtures("amazon")
def test_a_message_is_in_a_queue_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is deleted only once the other queue has it: if the delete fails it is in both."""
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
    """It stays, with the reason; the pass goes on behind it."""
    queue = Queue(UNREADABLE, record({"clientToken": "a"}, failed()))
    found = queue.pass_with(queue.url + "-gone")
    assert sorted(one.what for one in found) == ["failed", "sent"]
    assert "could not be set aside" in "".join(str(one.reason) for one in found)
    assert queue.visible() == 1


@pytest.mark.usefixtures("amazon")
def test_what_was_set_aside_can_be_redriven_as_the_same_run() -> None:
    """By hand, once Lambda takes it: a message of the queue of jobs has the id there that names its run."""
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
    """They say that Lambda has put the event there, and why; SQS takes ten."""
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
    """It says what would be sent."""
    queue = Queue(record({"clientToken": "t"}, failed()))
    told = CliRunner().invoke(app, ["redrive", "--queue-url", queue.url, "--function", "f", "--dry-run", "--json"])
    assert [(one["what"], one["attempt"], one["requestId"]) for one in json.loads(told.stdout)] == [("sent", 1, None)]
    assert (told.exit_code, queue.visible()) == (0, 1)


def test_the_event_of_a_failed_execution_is_redriven_as_the_same_run_and_counted() -> None:
    """Lambda puts it into the dead-letter queue as it was; a token names the run, and each redrive is one more."""
    event = {"script": "s3://scripts/job.py", "clientToken": "t"}
    first = replay_of(json.dumps(event), "m", Origin.EXECUTION)
    assert (first.event, first.attempt) == ({"continuation": {"count": 1, "token": "t", "event": event}}, 1)
    second = replay_of(json.dumps(first.event), "m", Origin.EXECUTION)
    assert (second.event, second.attempt) == ({"continuation": {"count": 2, "token": "t", "event": event}}, 2)


@pytest.mark.usefixtures("amazon")
@pytest.mark.parametrize("event", [{"script": "s3://scripts/job.py"}, SCHEDULE, "s3://scripts/job.py"])
def test_the_event_of_a_failed_execution_without_a_token_stays(event: object) -> None:
    """As another run it would write its batch once more."""
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
    """And the number of messages that are looked at is bounded."""

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
    """What is in the queue beside it is invoked with."""
    queue = Queue(record({"day": 1}, None), body, record({"day": 2}, None))
    found = queue.redrive(queue.send)
    assert len(found) == 3
    assert {one.what for one in found} <= {"sent", "left"}
    assert {event["continuation"]["event"]["day"] for event in queue.sent} >= {1, 2}  # type: ignore[index]


def test_a_continuation_without_a_token_is_sent_again_under_its_first_key() -> None:
    """Under that of its own invocation it would be another run, and make all writes again."""
    event = {"script": "s3://scripts/job.py"}
    continued = json.loads(Continuation(2, "first-request", event).payload())
    replay: Any = replay_of(record(continued, {"errorMessage": "Task timed out"}, "another-request"), "m-1")
    assert replay.event["continuation"] == {"count": 3, "token": "first-request", "event": event}


JOB = json.dumps({"script": "s3://scripts/good.py"})
ERROR = {"ErrorCode": {"DataType": "Number", "StringValue": "200"}}
RULE = {"RULE_ARN": {"DataType": "String", "StringValue": "arn:aws:events:us-east-1:123456789012:rule/nightly"}}
FROM_JOBS = {"DeadLetterQueueSourceArn": "arn:aws:sqs:us-east-1:123456789012:jobs"}
STATED = {"DataType": "String", "StringValue": FROM_JOBS["DeadLetterQueueSourceArn"]}
MESSAGE_MAX_BYTES = 1_048_576


class Queues:
    """SQS in memory, with its bound on a message, and what it says of one that it has moved from another queue."""

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
    """Whoever may start a run could end every pass with it, for as long as the queue keeps the message."""
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
    """A key that is made without the function's name, or of no text, would be another run's."""
    queues = Queues()
    queues.put(body)
    assert (queues.redrive(), queues.sent) == (["parked"], [])


@pytest.mark.parametrize("answer", [{"errorMessage": "\ud800"}, {"errorMessage": 5}, []])
def test_an_answer_that_is_no_text_hides_no_run(answer: object) -> None:
    """There is no result, so the run is tried again."""
    assert replay_of(record({"clientToken": "t"}, answer), "m").hopeless is None


@pytest.mark.slow
@pytest.mark.usefixtures("amazon")
def test_a_dry_run_shows_a_message_that_cannot_be_read_beside_the_others() -> None:
    """By hand, as in the stack's own function, it has a reason and ends nothing."""
    queue = Queue(record({"clientToken": "t"}, failed()))
    queue.sqs.send_message(QueueUrl=queue.url, MessageBody='{"Records": 0}', MessageAttributes=ERROR)
    told = CliRunner().invoke(app, ["redrive", "--queue-url", queue.url, "--function", "f", "--dry-run", "--json"])
    assert sorted(one["what"] for one in json.loads(told.stdout)) == ["left", "sent"]
    assert (told.exit_code, queue.visible()) == (0, 2)


@pytest.mark.usefixtures("amazon")
def test_an_error_of_the_queue_leaves_nothing_hidden_and_nothing_untold(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was sent before it is told, and what was received and not looked at can be seen at once."""
    queue = Queue(*(record({"clientToken": name}, failed()) for name in "abc"))
    monkeypatch.setattr(queue.sqs, "delete_message", lambda **_: (_ for _ in ()).throw(RuntimeError("no network")))
    told: list[Redriven] = []
    with pytest.raises(RuntimeError, match="no network"):
        told.extend(redrive_queue(queue.sqs, queue.url, queue.send, attempts_max=3, messages_max=100, wait_s=0))
    assert [one.what for one in told] == ["sent"]
    assert queue.visible() == 3


@pytest.mark.parametrize("size", [MESSAGE_MAX_BYTES, MESSAGE_MAX_BYTES - 60, MESSAGE_MAX_BYTES - 1_023])
@pytest.mark.parametrize("system", [FROM_JOBS, {}], ids=["from the queue of jobs", "from nowhere"])
def test_messages_of_the_largest_size_leave_the_way_of_others(size: int, system: Any) -> None:
    """Lambda takes none of them, and a copy with one more attribute may be larger than SQS takes."""
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
    """Any queue of the account could name the failure queue as its own dead-letter queue, and its senders are no
    callers; whatever they say in attributes, the message is set aside, and a redrive of that queue leaves it there.
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
    """Those that name the run go first."""
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
    """It counts among those that the pass sets aside, not among those that it invokes with."""
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
    """Whatever its body looks like and its sender's attributes say: SQS says where it comes from, also once it was set
    aside. As an event of a rule it would have another key, and write its rows again.
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
    """Its run's key is the event's own if a rule brought it, and the message's if the queue of jobs did."""
    queues = Queues()
    queues.put(json.dumps(SCHEDULE))
    queues.put(json.dumps(SCHEDULE), RULE)
    (first, second) = queues.passing("failures", 100, "parked")
    assert (first.what, second.what, queues.sent) == ("parked", "sent", [SCHEDULE])
    assert "soal runs list" in str(first.reason)


def test_by_hand_an_error_of_the_queue_leaves_the_table_of_what_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nobody knows which runs have begun again."""

    def passing(*_: object, **__: object) -> Iterator[Redriven]:
        yield Redriven("m-1", "sent", None, 1, "request")
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DeleteMessage")

    monkeypatch.setattr("soal.commands.redrive.redrive_queue", passing)
    told = CliRunner().invoke(app, ["redrive", "--queue-url", "http://127.0.0.1:1/q", "--function", "f", "--json"])
    assert [one["messageId"] for one in json.loads(told.stdout)] == ["m-1"]
    assert "DeleteMessage" in str(told.exception)
