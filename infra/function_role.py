"""A function's role and log group, and the function itself: the role may write there, and `stack.py` adds its other
rights.

Each construct defines the job's rights on itself: `job_statements` of lake, checkpoints, catalog, scripts bucket and
secrets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Validations
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.interfaces import deny_interfaces, interface_statements

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_sqs as sqs

    from infra.config import Config
    from infra.image import Image
    from infra.network import Network


@dataclass(frozen=True, slots=True)
class Shared:
    """What all functions of the stack take."""

    config: Config
    image: Image
    key: kms.IKey | None
    network: Network


class FunctionRole(Construct):
    """`role` and `log_group`. Lambda's managed policies are not used: they allow the logs of the whole account."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        shared: Shared,
        statements: Iterable[iam.PolicyStatement],
        *,
        network: Network | None,
    ) -> None:
        super().__init__(scope, name)
        self._shared, self._network = shared, network
        # It outlives the stack: its lines say what happened to data that is kept. CloudFormation chooses its name, so
        # it does not collide with a new stack's; a failed deployment deletes its own.
        self.log_group = logs.LogGroup(
            self, "Logs", encryption_key=shared.key, removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
        )
        # CloudFormation takes any number of days; the library has an enumeration.
        cast("logs.CfnLogGroup", self.log_group.node.default_child).retention_in_days = shared.config.log_retention_days
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        self.role.add_to_policy(
            iam.PolicyStatement(
                sid="WriteLogs",
                actions=["logs:CreateLogStream", "logs:PutLogEvents"],
                resources=[self.log_group.log_group_arn],
            )
        )
        for statement in (*statements, *(() if network is None else interface_statements(network))):
            self.role.add_to_policy(statement)

    def function(
        self,
        name: str,
        command: str,
        environment: dict[str, str],
        **own: Any,  # noqa: ANN401 - of DockerImageFunction
    ) -> lambda_.DockerImageFunction:
        """Create the function with this role, beside it; `command` is its entry in the image."""
        shared, network = self._shared, self._network
        if network is not None:
            own |= {
                "security_groups": network.security_groups,
                "vpc": network.vpc,
                "vpc_subnets": network.subnets,
            }
        function = lambda_.DockerImageFunction(
            cast("Construct", self.node.scope),
            name,
            architecture=shared.image.architecture,
            code=shared.image.code(command),
            environment=environment,
            environment_encryption=shared.key,
            log_group=self.log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            role=self.role,
            # If its invocations are traced, the CDK gives the role the right.
            tracing=lambda_.Tracing.ACTIVE if shared.config.tracing else lambda_.Tracing.DISABLED,
            **own,
        )
        if network is not None:
            deny_interfaces(function, network)
        return function


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
