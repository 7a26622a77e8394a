"""The redrive makes from one failed message the event that repeats the same run under the same key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from handler.functions.failed_message import Origin, replay_of
from handler.outcome.delivery import JobFailed, deliver
from handler.outcome.state import State
from handler.request.continuation import Continuation
from handler.request.trigger import recognise
from tests.unit.handler.functions.messages import (
    S3,
    SCHEDULE,
    SQS,
    failed,
    record,
)
from tests.unit.handler.world import UNKNOWN, World

if TYPE_CHECKING:
    from pathlib import Path


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
    """In the handler, whatever names the run, the replay of the payload that Lambda keeps is its second attempt."""
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
    """The record names the function; the redrive's own name, or an operator's machine, must not matter."""
    first = replay_of(record(SCHEDULE, None), "m-1")
    other = replay_of(record(SCHEDULE, None).replace(":jobs:", ":others:"), "m-1")
    keys = [replay.event["continuation"]["token"] for replay in (first, other)]  # type: ignore[index]
    trigger = recognise(SCHEDULE)
    assert trigger is not None
    assert keys == [trigger.run_key("jobs"), trigger.run_key("others")]
    assert replay_of(record(SCHEDULE, None).replace(":live", ""), "m-1") == first


@pytest.mark.parametrize("context", [["a"], "text", 1, None, {}])
def test_a_record_without_what_names_its_run_cannot_be_read(context: object) -> None:
    """It stays in the queue, and the other messages are redriven."""
    body = json.dumps({"requestContext": context, "requestPayload": {"day": 1}})
    with pytest.raises((ValueError, KeyError, TypeError)):
        replay_of(body, "m-1")


def test_an_event_twice_at_once_is_one_run(tmp_path: Path) -> None:
    """Lambda may deliver an asynchronous event twice with the same request id."""
    world = World(tmp_path)
    event = {"script": "s3://scripts/job.py"}
    first = world.handle(event)
    assert world.handle(event).previous_run_id == first.run_id
    assert len(world.stored("runs/")) == 1


def test_a_run_that_lambda_has_killed_is_tried_again() -> None:
    """It left no result, so nothing speaks against a retry."""
    replay = replay_of(record({"clientToken": "t"}, {"errorMessage": "Task timed out after 900.00 seconds"}), "m-1")
    assert (replay.attempt, replay.hopeless) == (1, None)


def test_a_run_that_is_killed_each_time_is_not_tried_for_ever() -> None:
    """The event counts the replays, since there is no result."""
    event: object = {"script": "s3://scripts/job.py", "clientToken": "t"}
    for attempt in (1, 2, 3):
        replay = replay_of(record(event, {"errorMessage": "Task timed out after 900.00 seconds"}), "m-1")
        assert replay.attempt == attempt
        event = replay.event


def test_a_message_of_the_queue_of_jobs_has_its_own_id_again() -> None:
    """The function gets it as in a first delivery; an event of a rule stays unchanged."""
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
    """The cases are a usage error and a cancelled run."""
    assert str(replay_of(record({"clientToken": "t"}, answer), "m-1").hopeless).endswith(reason)


def test_the_event_of_a_failed_execution_is_redriven_as_the_same_run_and_counted() -> None:
    """Lambda puts it unchanged into the dead-letter queue; a token names the run, and each redrive counts."""
    event = {"script": "s3://scripts/job.py", "clientToken": "t"}
    first = replay_of(json.dumps(event), "m", Origin.EXECUTION)
    assert (first.event, first.attempt) == ({"continuation": {"count": 1, "token": "t", "event": event}}, 1)
    second = replay_of(json.dumps(first.event), "m", Origin.EXECUTION)
    assert (second.event, second.attempt) == ({"continuation": {"count": 2, "token": "t", "event": event}}, 2)


def test_a_continuation_without_a_token_is_sent_again_under_its_first_key() -> None:
    """Under the key of its own invocation it would be another run, and repeat all writes."""
    event = {"script": "s3://scripts/job.py"}
    continued = json.loads(Continuation(2, "first-request", event).payload())
    replay: Any = replay_of(record(continued, {"errorMessage": "Task timed out"}, "another-request"), "m-1")
    assert replay.event["continuation"] == {"count": 3, "token": "first-request", "event": event}


@pytest.mark.parametrize("answer", [{"errorMessage": "\ud800"}, {"errorMessage": 5}, []])
def test_an_answer_that_is_no_text_hides_no_run(answer: object) -> None:
    """There is no result, so the run is tried again."""
    assert replay_of(record({"clientToken": "t"}, answer), "m").hopeless is None
