"""The stack's redrive function, on request only: schedule, variables, rights, and the queue of parked messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from handler.functions.redrive import _Settings
from infra.config import FAILURE_QUEUE_DAYS, Config

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised


def function(stack: Synthesised) -> dict[str, Any]:
    return stack.the("Lambda::Function", "Redrive")


def name_of(stack: Synthesised, beginning: str) -> str:
    (name,) = (name for name in stack.of_type("SQS::Queue") if name.startswith(beginning))
    return name


def test_nothing_is_invoked_again_unless_somebody_asks(plain: Synthesised) -> None:
    """By default the stack has no redrive function."""
    assert not [name for name in plain.of_type("Lambda::Function") if name.startswith("Redrive")]


def test_it_is_the_same_image_on_a_schedule_and_never_beside_itself(full: Synthesised) -> None:
    """It has the job's version and architecture; a pass ends before the next one begins."""
    rule = full.the("Events::Rule", "Redrive")
    assert function(full)["Code"] == full.the("Lambda::Function", "Runtime")["Code"]
    assert function(full)["Architectures"] == ["arm64"]
    assert function(full)["ImageConfig"] == {"Command": ["handler.functions.redrive.lambda_handler"]}
    assert rule["ScheduleExpression"] == "rate(1 hour)"
    assert function(full)["Timeout"] < Config().redrive_minutes * 60
    assert full.the("Lambda::EventInvokeConfig", "Redrive")["MaximumRetryAttempts"] == 0


def test_its_settings_name_queue_alias_and_bound(full: Synthesised) -> None:
    """The variables are those that the function reads; it knows no bucket."""
    variables = full.resolved(function(full)["Environment"]["Variables"])
    settings = _Settings.model_validate(variables)
    (alias,) = full.of_type("Lambda::Alias")
    queue, parked = (name_of(full, beginning).lower() for beginning in ("Failures", "RedriveParked"))
    assert (settings.attempts_max, settings.function) == (3, full.resolved({"Ref": alias}))
    assert (settings.queue, settings.parked) == (queue, parked)
    assert settings.jobs == jobs_arn(full)
    assert "SW_CHECKPOINT_BUCKET" not in variables


def jobs_arn(stack: Synthesised) -> str:
    queue = stack.the("SQS::Queue", "Triggers")
    return f"arn:aws:sqs:us-east-1:123456789012:{queue['QueueName']}"


def test_it_takes_failures_invokes_the_alias_and_no_more(full: Synthesised) -> None:
    """It has no rights on buckets, other functions, or queues other than the parked one."""
    access = full.access("RedriveAgainRole")
    actions = {action for statement in access.statements for action in statement.actions}
    assert actions == {
        *("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:SendMessage"),
        *("lambda:InvokeFunction", "kms:Decrypt", "kms:GenerateDataKey", "logs:CreateLogStream", "logs:PutLogEvents"),
        *("xray:PutTelemetryRecords", "xray:PutTraceSegments"),
    }
    for statement in access.statements:
        own = statement.sid == "WriteLogs" or statement.actions[0].startswith("xray:")
        assert own or not any("*" in resource for resource in statement.resources)


def test_only_the_redrive_sets_aside_and_no_role_takes_that_back(full: Synthesised) -> None:
    """It sends to one queue and receives from the other, and a job has no right on parked messages."""
    queue, parked = (
        f"arn:aws:sqs:us-east-1:123456789012:{name_of(full, beginning).lower()}"
        for beginning in ("Failures", "RedriveParked")
    )
    rights = {
        (role.rstrip("0123456789ABCDEF"), action)
        for role in full.of_type("IAM::Role")
        for action in ("SendMessage", "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility", "PurgeQueue")
        if full.access(role).may(f"sqs:{action}", parked)
    }
    opened = [
        statement["Effect"]
        for policy in full.of_type("SQS::QueuePolicy").values()
        if {"Ref": name_of(full, "RedriveParked")} in policy["Queues"]
        for statement in policy["PolicyDocument"]["Statement"]
    ]

    assert rights == {("RedriveAgainRole", "SendMessage")}
    assert not full.access("RedriveAgainRole").may("sqs:SendMessage", queue)
    assert opened == ["Deny"]


def test_what_was_set_aside_is_kept_as_long_and_told_of(full: Synthesised, plain: Synthesised) -> None:
    """Parked messages are kept 14 days and have a dashboard entry, an alarm and an output; all only with a redrive."""
    name = name_of(full, "RedriveParked")
    (alarm,) = (one for key, one in full.of_type("CloudWatch::Alarm").items() if key.startswith("AlarmsParked"))

    assert full.of_type("SQS::Queue")[name]["MessageRetentionPeriod"] == FAILURE_QUEUE_DAYS * 86_400
    assert alarm["Dimensions"] == [{"Name": "QueueName", "Value": {"Fn::GetAtt": [name, "QueueName"]}}]
    assert (alarm["MetricName"], alarm["Threshold"]) == ("ApproximateNumberOfMessagesVisible", 1)
    assert name in str(full.the("CloudWatch::Dashboard"))
    assert full.template["Outputs"]["ParkedQueueUrl"]["Value"] == {"Ref": name}
    assert "Parked" not in str(plain.template)
