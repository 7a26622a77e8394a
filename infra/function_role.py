"""A function's role and log group: the role may write there, and `stack.py` adds its other rights.

Each construct defines the job's rights on itself: `job_statements` of lake, checkpoints, catalog, scripts bucket and
secrets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Validations
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_sqs as sqs

    from infra.config import Config


class FunctionRole(Construct):
    """`role` and `log_group`. Lambda's managed policies are not used: they allow the logs of the whole account."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        log_days: int,
        key: kms.IKey | None,
        statements: Iterable[iam.PolicyStatement],
    ) -> None:
        super().__init__(scope, name)
        # It outlives the stack: its lines say what happened to data that is kept. CloudFormation chooses its name, so
        # it does not collide with a new stack's; a failed deployment deletes its own.
        self.log_group = logs.LogGroup(
            self, "Logs", encryption_key=key, removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
        )
        # CloudFormation takes any number of days; the library has an enumeration.
        cast("logs.CfnLogGroup", self.log_group.node.default_child).retention_in_days = log_days
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        self.role.add_to_policy(
            iam.PolicyStatement(
                sid="WriteLogs",
                actions=["logs:CreateLogStream", "logs:PutLogEvents"],
                resources=[self.log_group.log_group_arn],
            )
        )
        for statement in statements:
            self.role.add_to_policy(statement)


def traced(config: Config) -> lambda_.Tracing:
    """Return whether a function's invocations are traced; if so, the CDK gives its role the right."""
    return lambda_.Tracing.ACTIVE if config.tracing else lambda_.Tracing.DISABLED


def invoke_every(
    scope: Construct, function: lambda_.Function, *, minutes: int, purpose: str, undelivered: sqs.IQueue
) -> None:
    """Let a schedule invoke a function that nothing else invokes; acknowledge that no queue keeps its failures."""
    events.Rule(
        scope,
        "Schedule",
        description=f"SoAL: {purpose}",
        schedule=events.Schedule.rate(Duration.minutes(minutes)),
        targets=[targets.LambdaFunction(function, dead_letter_queue=undelivered, retry_attempts=0)],
    )
    for rule in ("LambdaDLQ", "LambdaAsyncFailureDestination"):
        Validations.of(function).acknowledge(
            Acknowledgment(
                id=f"Serverless::Serverless-{rule}",
                reason="Its event holds no data to lose: the next one is the retry, and an alarm reports the failure",
            )
        )
