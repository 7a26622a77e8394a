"""A state machine of Step Functions that makes as many attempts of a run as it needs, and ends as the run ends.

A failed run is a function error, whose `Cause` holds the result as text: the machine reads it. An INCOMPLETE run
goes on at once if it has committed something; else, as one that may succeed later, it is tried again a few times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.invoker import invoker_role

if TYPE_CHECKING:
    from aws_cdk import aws_lambda as lambda_

    from infra.config import Config

_TRIES: Final = 5
_WAIT_S: Final = 60
_ALL_S: Final = 24 * 3600
_KEYED: Final = (
    'States.JsonMerge(States.StringToJson(States.Format(\'\\{"clientToken":"{}"\\}\', $$.Execution.Name)), $, false)'
)
"""The event, with the execution's name as its run key unless it has one."""
_KEPT: Final = ("runId", "attempt", "state", "stateDetails", "error", "resultUri")
"""Of a returned result: the document at `resultUri` has all, and a state holds 256 KiB with the event. A path to a
field that an image does not have would end the execution, so `progressed`, which is younger than these, is read of a
raised result only. No function of this machine returns INCOMPLETE: none continues its runs by itself.
"""
_OF_LAMBDA: Final = (
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.TooManyRequestsException",
)
_OF_THE_SANDBOX: Final = ("Lambda.Unknown", "Sandbox.Timedout", "Runtime.ExitError")
"""A sandbox that was killed: the next attempt settles its writes first."""

_PROGRESS_TOLD: Final = {"Variable": "$.answer.result.progressed", "IsPresent": True}


def definition(function_arn: str) -> dict[str, Any]:
    """Return the machine in Amazon's States Language; `function_arn`: the alias that it invokes."""
    return {
        "StartAt": "Key",
        "TimeoutSeconds": _ALL_S,
        "States": {
            "Key": {"Type": "Pass", "Parameters": {"event.$": _KEYED, "tries": 0}, "Next": "Run"},
            "Run": {
                "Type": "Task",
                "Resource": "arn:aws:states:::lambda:invoke",
                "Parameters": {"FunctionName": function_arn, "Payload.$": "$.event"},
                "ResultSelector": {"result": {f"{name}.$": f"$.Payload.{name}" for name in _KEPT}},
                "ResultPath": "$.answer",
                "Retry": [
                    {"ErrorEquals": [*_OF_LAMBDA], "IntervalSeconds": 2, "BackoffRate": 2, "MaxAttempts": 6},
                    {"ErrorEquals": [*_OF_THE_SANDBOX], "IntervalSeconds": _WAIT_S, "MaxAttempts": _TRIES},
                ],
                "Catch": [{"ErrorEquals": ["JobFailed"], "ResultPath": "$.failure", "Next": "ReadCause"}],
                "Next": "Judge",
            },
            "ReadCause": {
                "Type": "Pass",
                "Parameters": {
                    "event.$": "$.event",
                    "tries.$": "$.tries",
                    "cause.$": "States.StringToJson($.failure.Cause)",
                },
                "Next": "ReadResult",
            },
            "ReadResult": {
                "Type": "Pass",
                "Parameters": {
                    "event.$": "$.event",
                    "tries.$": "$.tries",
                    "answer": {"result.$": "States.StringToJson($.cause.errorMessage)"},
                },
                "Next": "Judge",
            },
            "Judge": {
                "Type": "Choice",
                "Choices": [
                    {"Or": [_state_is("SUCCESS"), _state_is("SKIPPED")], "Next": "Done"},
                    {"And": [_state_is("INCOMPLETE"), {"Not": _PROGRESS_TOLD}], "Next": "Unknown"},
                    {
                        "And": [
                            _state_is("INCOMPLETE"),
                            _PROGRESS_TOLD,
                            {"Variable": "$.answer.result.progressed", "BooleanEquals": True},
                        ],
                        "Next": "Again",
                    },
                    {
                        "And": [
                            {"Not": _state_is("TIMED_OUT")},
                            {"Variable": "$.answer.result.error.retryable", "BooleanEquals": True},
                            {"Variable": "$.tries", "NumericLessThan": _TRIES},
                        ],
                        "Next": "Count",
                    },
                ],
                "Default": "Failed",
            },
            "Again": {"Type": "Pass", "Parameters": {"event.$": "$.event", "tries.$": "$.tries"}, "Next": "Run"},
            "Count": {
                "Type": "Pass",
                "Parameters": {"event.$": "$.event", "tries.$": "States.MathAdd($.tries, 1)"},
                "Next": "Later",
            },
            "Later": {"Type": "Wait", "Seconds": _WAIT_S, "Next": "Run"},
            "Done": {"Type": "Succeed", "OutputPath": "$.answer.result"},
            "Unknown": {
                "Type": "Fail",
                "Error": "UNKNOWN",
                "Cause": "The run is INCOMPLETE, and its image is older than this state machine: its answer does not"
                " tell whether the attempt has committed a write (progressed). Deploy both from one version, and start"
                " an execution with the same clientToken",
            },
            "Failed": {
                "Type": "Fail",
                "ErrorPath": "$.answer.result.state",
                "CausePath": "$.answer.result.stateDetails",
            },
        },
    }


def _state_is(state: str) -> dict[str, str]:
    return {"Variable": "$.answer.result.state", "StringEquals": state}


class Workflow(Construct):
    """`machine` runs the job document that is its input."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        config: Config,
        alias: lambda_.IAlias,
    ) -> None:
        super().__init__(scope, name)
        role = invoker_role(self, "states.amazonaws.com", alias=alias)
        self.machine = sfn.CfnStateMachine(
            self,
            "Machine",
            definition_string=Stack.of(self).to_json_string(definition(alias.function_arn)),
            role_arn=role.role_arn,
            tracing_configuration=sfn.CfnStateMachine.TracingConfigurationProperty(enabled=config.tracing),
        )
        self.machine.node.add_dependency(role)
        Validations.of(self.machine).acknowledge(
            Acknowledgment(
                id="AwsSolutions::AwsSolutions-SF1",
                reason="Step Functions keeps the history of each execution; a log would hold the arguments of events",
            )
        )
