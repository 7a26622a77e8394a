"""The stack's triggers, on request only: a queue of jobs, a schedule and new objects invoke the function's alias."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from handler.request.job import requested
from handler.request.trigger import recognise
from handler.settings import read_settings
from infra.context import read_context
from infra.contradictions import ConfigError
from tests.support.cloud import IMAGE

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised


def alias(stack: Synthesised) -> dict[str, str]:
    (name,) = stack.of_type("Lambda::Alias")
    return {"Ref": name}


def test_nothing_invokes_the_function_unless_asked_for(plain: Synthesised) -> None:
    """Without triggers the only rule is the sweeper's, and there is no event source or queue of jobs."""
    assert [name for name in plain.of_type("Events::Rule") if name.startswith("Triggers")] == []
    assert plain.of_type("Lambda::EventSourceMapping") == {}
    assert not [name for name in plain.of_type("SQS::Queue") if name.startswith("Triggers")]


def test_a_message_stays_hidden_longer_than_its_run_can_live(full: Synthesised) -> None:
    """The visibility timeout is six times the function's timeout, so that no message returns beside its own run."""
    queue = full.the("SQS::Queue", "Triggers")

    assert queue["VisibilityTimeout"] >= 6 * full.the("Lambda::Function", "Runtime")["Timeout"]


def test_a_message_that_always_fails_ends_in_the_failure_queue(full: Synthesised) -> None:
    """After three tries it neither costs more money nor is lost."""
    (failures,) = (name for name in full.of_type("SQS::Queue") if name.startswith("Failures"))

    assert full.the("SQS::Queue", "Triggers")["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": [failures, "Arn"]},
        "maxReceiveCount": 3,
    }


def test_each_message_is_a_run_of_its_own(full: Synthesised) -> None:
    """A batch has one message and goes to the alias, with the requested concurrency."""
    mapping = full.the("Lambda::EventSourceMapping")

    assert mapping["BatchSize"] == 1
    assert mapping["FunctionName"]["Fn::Join"][1][-1] == ":live"
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 2}


def test_only_the_job_queue_can_be_read(full: Synthesised) -> None:
    """Lambda receives messages from the queue of jobs with the function's role, and from no other queue."""
    jobs, failures = (
        next(name for name in full.of_type("SQS::Queue") if name.startswith(kind)) for kind in ("Triggers", "Failures")
    )
    access, base = full.access("RuntimeJobRole"), "arn:aws:sqs:us-east-1:123456789012:"

    for action in ("sqs:ReceiveMessage", "sqs:DeleteMessage"):
        assert access.may(action, base + jobs.lower())
        assert not access.may(action, base + failures.lower())


def test_a_schedule_and_new_objects_invoke_the_alias(full: Synthesised) -> None:
    """Undeliverable events go to the failure queue; the handler recognises the events."""
    (failures,) = (name for name in full.of_type("SQS::Queue") if name.startswith("Failures"))
    schedule, objects = (full.the("Events::Rule", f"Triggers{name}") for name in ("Schedule", "Objects"))

    assert schedule["ScheduleExpression"] == "rate(1 day)"
    assert objects["EventPattern"] == {
        "source": ["aws.s3"],
        "detail-type": ["Object Created"],
        "detail": {"bucket": {"name": ["raw"]}, "object": {"key": [{"prefix": "in/"}]}},
    }
    for rule in (schedule, objects):
        (target,) = rule["Targets"]
        assert target["Arn"] == alias(full)
        assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": [failures, "Arn"]}}
    event = {"source": "aws.s3", "detail-type": "Object Created", "id": "7", "detail": {"bucket": {"name": "raw"}}}
    assert recognise(event) is not None


def test_a_named_schedule_runs_its_script_under_a_key_of_its_name_and_time(full: Synthesised) -> None:
    """Scheduler replaces the time in its input, and delivers an event at least once: the key is the same each time."""
    schedule = full.the("Scheduler::Schedule")
    event = json.loads(full.resolved(schedule["Target"]["Input"]))
    sent = json.loads(json.dumps(event).replace("<aws.scheduler.scheduled-time>", "2026-11-27T03:00:00Z"))
    job = requested(
        sent, read_settings({"SCRIPT_BUCKET": "my-scripts", "SW_CHECKPOINT_BUCKET": "checkpoints"}), "r"
    ).job
    assert (schedule["ScheduleExpression"], schedule["ScheduleExpressionTimezone"]) == ("rate(1 hour)", "UTC")
    assert (str(job.entry_point), job.arguments) == ("s3://my-scripts/spark/jobs/hourly.py", ("a b",))
    assert (job.name, job.run_key) == ("hourly", "hourly-2026-11-27T03:00:00Z")
    assert schedule["Target"]["Arn"] == alias(full)


@pytest.mark.parametrize(
    ("schedules", "problem"),
    [
        ({"n": {"schedule": "daily", "script": "a.py"}}, "rate"),
        ({"n": {"schedule": "rate(1 day)", "script": "../a.py"}}, "script"),
        ({"n": {"schedule": "rate(1 day)"}}, "Field required"),
        ({"a b": {"schedule": "rate(1 day)", "script": "a.py"}}, "a b"),
        ({"n" * 44: {"schedule": "rate(1 day)", "script": "a.py"}}, "n" * 44),
    ],
)
def test_a_schedule_that_could_start_no_job_is_refused(schedules: object, problem: str) -> None:
    """With its name, before anything is deployed."""
    with pytest.raises(ConfigError, match="schedules") as caught:
        read_context({"image_uri": IMAGE, "schedules": json.dumps(schedules)})
    assert problem in str(caught.value)
