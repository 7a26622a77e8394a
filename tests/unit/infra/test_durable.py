"""A durable function instead of a plain one: https://docs.aws.amazon.com/lambda/latest/dg/durable-functions.html."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import pytest
from aws_durable_execution_sdk_python import lambda_service
from cfnlint.api import lint
from cfnlint.config import ManualArgs

from tests.unit.infra.test_stack import KEPT

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised

HERE = "arn:aws:lambda:us-east-1:123456789012:function"


def function(stack: Synthesised) -> tuple[str, dict[str, Any]]:
    """Return the function's logical id and properties."""
    ((name, properties),) = (
        (key, each) for key, each in stack.of_type("Lambda::Function").items() if key.startswith("Runtime")
    )
    return name, properties


def test_an_execution_has_the_time_that_was_asked_for(durable: Synthesised, plain: Synthesised) -> None:
    """The execution's history is kept as long as failed events."""
    _, properties = function(durable)
    assert properties["DurableConfig"] == {"ExecutionTimeout": 3 * 86_400, "RetentionPeriodInDays": 14}
    assert properties["ImageConfig"] == {"Command": ["handler.functions.durable.lambda_handler"]}
    assert "DurableConfig" not in function(plain)[1]


def test_a_plain_function_is_replaced_and_that_is_said(durable: Synthesised, plain: Synthesised) -> None:
    """Lambda makes a function durable only at its creation."""
    assert function(durable)[0] != function(plain)[0]
    assert "soal:durable" in durable.warnings
    assert "soal:durable" not in plain.warnings


def test_failed_events_go_to_the_failure_queue(durable: Synthesised) -> None:
    """They go through a dead-letter queue: Lambda has no destinations for durable functions."""
    (queue,) = (name for name in durable.of_type("SQS::Queue") if name.startswith("Failures"))
    _, properties = function(durable)
    assert properties["DeadLetterConfig"] == {"TargetArn": {"Fn::GetAtt": [queue, "Arn"]}}
    for config in durable.of_type("Lambda::EventInvokeConfig").values():
        assert "DestinationConfig" not in config
        assert config["MaximumRetryAttempts"] == 0
    assert durable.access("RuntimeJobRole").may(
        "sqs:SendMessage", f"arn:aws:sqs:us-east-1:123456789012:{queue.lower()}"
    )


def test_the_function_keeps_steps_of_its_own_executions_and_of_no_others(
    durable: Synthesised, plain: Synthesised
) -> None:
    """The function may make the two calls of its SDK; it cannot start, stop or describe executions."""
    name, _ = function(durable)
    own = f"{HERE}:{name.lower()}:7/durable-execution/nightly/3f2c"
    access = durable.access("RuntimeJobRole")
    for action in ("lambda:CheckpointDurableExecution", "lambda:GetDurableExecutionState"):
        assert access.may(action, own)
        assert not access.may(action, own.replace(name.lower(), "other"))
        assert not plain.access("RuntimeJobRole").may(action, own)
    for action in ("lambda:StopDurableExecution", "lambda:GetDurableExecution", "lambda:InvokeFunction"):
        assert not access.may(action, own)


def test_the_sdk_makes_no_other_call() -> None:
    """Therefore the function needs only these two rights."""
    source = inspect.getsource(lambda_service.LambdaClient)
    called = {name.title().replace("_", "") for name in re.findall(r"self\.client\.(\w+)\(", source)}
    assert called == {"CheckpointDurableExecution", "GetDurableExecutionState"}


def test_executions_that_fail_or_time_out_raise_an_alarm_and_have_a_row(
    durable: Synthesised, plain: Synthesised
) -> None:
    """The alarms use Lambda's own metrics: https://docs.aws.amazon.com/lambda/latest/dg/durable-monitoring.html."""
    watched = {alarm["MetricName"] for alarm in durable.of_type("CloudWatch::Alarm").values()}
    assert {"DurableExecutionFailed", "DurableExecutionTimedOut", "DeadLetterErrors"} <= watched
    body = durable.resolved(durable.the("CloudWatch::Dashboard")["DashboardBody"])
    shown = set(re.findall(r'"AWS/Lambda","(\w*Durable\w*)"', body))
    assert {"DurableExecutionStarted", "DurableExecutionSucceeded", "DurableExecutionDuration"} <= shown
    assert "Durable" not in plain.resolved(plain.the("CloudWatch::Dashboard")["DashboardBody"])


@pytest.mark.slow
def test_cdk_nag_and_cloudformation_s_schemas_find_nothing(durable: Synthesised) -> None:
    """The only findings are wildcards with a reason: an execution's ARN begins with that of a version."""
    kept = (*KEPT, r"Runtime/KeepSteps/.*\[Resource::<Runtime\w+\.Arn>:\*\]")
    unexpected = [
        f"{each.construct} {each.rule}"
        for each in durable.violations
        if not any(re.search(pattern, f"{each.construct} {each.rule}") for pattern in kept)
    ]
    assert unexpected == []
    settings = ManualArgs(regions=["us-east-1", "eu-west-1"], ignore_checks=["W3005"])
    assert [str(each) for each in lint(durable.path.read_text(), config=settings)] == []
