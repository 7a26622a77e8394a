from __future__ import annotations

from typing import TYPE_CHECKING, Any

from handler.functions.redrive import _Settings
from infra.config import Config

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised


def function(stack: Synthesised) -> dict[str, Any]:
    return stack.the("Lambda::Function", "Redrive")


def test_nothing_is_invoked_again_unless_somebody_asks(plain: Synthesised) -> None:
    """The stack has no such function."""
    assert not [name for name in plain.of_type("Lambda::Function") if name.startswith("Redrive")]


def test_it_is_the_same_image_on_a_schedule_and_never_beside_itself(full: Synthesised) -> None:
    """Of one version and one architecture with the job; it has ended before it begins again."""
    rule = full.the("Events::Rule", "Redrive")
    assert function(full)["Code"] == full.the("Lambda::Function", "Runtime")["Code"]
    assert function(full)["Architectures"] == ["arm64"]
    assert function(full)["ImageConfig"] == {"Command": ["handler.functions.redrive.lambda_handler"]}
    assert rule["ScheduleExpression"] == "rate(1 hour)"
    assert function(full)["Timeout"] < Config().redrive_minutes * 60
    assert full.the("Lambda::EventInvokeConfig", "Redrive")["MaximumRetryAttempts"] == 0


def test_its_settings_name_queue_alias_and_bound(full: Synthesised) -> None:
    """As the function reads them; it knows of no bucket."""
    variables = full.resolved(function(full)["Environment"]["Variables"])
    settings = _Settings.model_validate(variables)
    (alias,), (queue,) = full.of_type("Lambda::Alias"), [n for n in full.of_type("SQS::Queue") if n.startswith("Fail")]
    assert (settings.attempts_max, settings.function, settings.queue) == (
        3,
        full.resolved({"Ref": alias}),
        queue.lower(),
    )
    assert "SW_CHECKPOINT_BUCKET" not in variables


def test_it_takes_failures_invokes_the_alias_and_no_more(full: Synthesised) -> None:
    """No bucket, no other queue, no other function."""
    access = full.access("RedriveAgainRole")
    actions = {action for statement in access.statements for action in statement.actions}
    assert actions == {
        *("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"),
        *("lambda:InvokeFunction", "kms:Decrypt", "kms:GenerateDataKey", "logs:CreateLogStream", "logs:PutLogEvents"),
        *("xray:PutTelemetryRecords", "xray:PutTraceSegments"),
    }
    for statement in access.statements:
        own = statement.sid == "WriteLogs" or statement.actions[0].startswith("xray:")
        assert own or not any("*" in resource for resource in statement.resources)
