"""The job's function: its image, its rights, its invocation and the destination of its failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Size, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from constructs import Construct

from infra.config import FAILURE_QUEUE_DAYS
from infra.denials import SEND, deny_to_code
from infra.function_role import FunctionRole

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import timedelta

    from aws_cdk import aws_sqs as sqs

    from infra.function_role import Shared
    from infra.network import Network

_ALIAS: Final = "live"
_GIB_PER_CORE: Final = 2
"""Of Managed Instances. handler.spark.machine counts on it."""
# Lambda ends a chain of a function's invocations after about 16 (recursive loop detection). For runs that may continue
# that often, the handler enforces the limit instead.
# https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
_LOOP_NOTICED_AFTER: Final = 12


class JobFunction(Construct):
    """`function`, and `alias`, through which it is invoked: an upgrade is a new version, a rollback moves the alias."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        shared: Shared,
        *,
        statements: Iterable[iam.PolicyStatement],
        environment: dict[str, str],
        failures: sqs.IQueue,
    ) -> None:
        super().__init__(scope, name)
        config, network = shared.config, shared.network
        job = FunctionRole(self, "Job", shared, statements, network=network)
        self.role, self.log_group = job.role, job.log_group
        max_age = Duration.seconds(config.max_event_age_s)
        durable, managed = config.durable, config.capacity_provider
        # A durable function has a dead-letter queue, and no destinations.
        # https://docs.aws.amazon.com/lambda/latest/dg/durable-invoking.html
        on_failure = destinations.SqsDestination(failures) if durable is None else None
        self.function = job.function(
            # A function cannot become durable, or move to Managed Instances, so such a one needs another logical id.
            f"{'' if managed is None else 'Managed'}{'' if durable is None else 'Durable'}Function",
            "handler.app.lambda_handler" if durable is None else "handler.functions.durable.lambda_handler",
            environment,
            # A rollback returns to the previous version. All versions are deleted with the function.
            current_version_options=lambda_.VersionOptions(removal_policy=RemovalPolicy.RETAIN),
            dead_letter_queue=None if durable is None else failures,
            description="SoAL: runs PySpark scripts, guarded",
            durable_config=None if durable is None else _durable(durable),
            ephemeral_storage_size=Size.mebibytes(config.ephemeral_storage_mb),
            max_event_age=max_age,
            memory_size=config.memory_mb,
            on_failure=on_failure,
            recursive_loop=lambda_.RecursiveLoop.ALLOW if config.continue_max >= _LOOP_NOTICED_AFTER else None,
            reserved_concurrent_executions=config.reserved_concurrency,
            retry_attempts=config.retry_attempts,
            timeout=Duration.seconds(config.timeout_s),
        )
        if managed is not None:
            _put_on_instances(cast("lambda_.CfnFunction", self.function.node.default_child), managed)
        self.alias = lambda_.Alias(
            self,
            "Alias",
            alias_name=_ALIAS,
            version=self.function.current_version,
            # The alias has its own settings for failed events.
            max_event_age=max_age,
            on_failure=on_failure,
            provisioned_concurrent_executions=config.provisioned_concurrency,
            retry_attempts=config.retry_attempts,
        )
        if durable is None:
            Validations.of(self.function).acknowledge(_no_queue())
        else:
            for construct in (self.function, self.alias):
                Validations.of(construct).acknowledge(_no_destination())
        # Lambda sends the failures. A redrive would start any message that the code could send there.
        deny_to_code(self, "NoFailures", function=self.function, actions=SEND, resources=[failures.queue_arn])
        arn = self.function.function_arn
        if config.continue_max > 0:
            self._allow(network, "ContinueRun", ["lambda:InvokeFunction"], [arn, f"{arn}:{_ALIAS}"])
        if durable is not None:
            # An execution's ARN begins with that of a version.
            # https://docs.aws.amazon.com/lambda/latest/dg/durable-security.html
            actions = ["lambda:CheckpointDurableExecution", "lambda:GetDurableExecutionState"]
            self._allow(network, "KeepSteps", actions, [f"{arn}:*"])

    def _allow(self, network: Network, sid: str, actions: list[str], resources: list[str]) -> None:
        # A separate policy: the function waits for the role's default policy, which therefore cannot name the function.
        statement = iam.PolicyStatement(sid=sid, actions=actions, resources=resources)
        iam.Policy(self, sid, roles=[self.role], statements=[statement])
        network.let_call_itself(sid, actions, resources)


def _put_on_instances(function: lambda_.CfnFunction, provider_arn: str) -> None:
    """Put a function on a capacity provider's instances; the CDK does so only with a provider of its own stack."""
    function.publish_to_latest_published = False  # the alias names a version; another one would cost as much again
    function.capacity_provider_config = lambda_.CfnFunction.CapacityProviderConfigProperty(
        lambda_managed_instances_capacity_provider_config=(
            lambda_.CfnFunction.LambdaManagedInstancesCapacityProviderConfigProperty(
                capacity_provider_arn=provider_arn,
                execution_environment_memory_gib_per_v_cpu=_GIB_PER_CORE,
                per_execution_environment_max_concurrency=1,  # otherwise the handler does not start
            )
        )
    )


def _durable(time: timedelta) -> lambda_.DurableConfig:
    return lambda_.DurableConfig(
        execution_timeout=Duration.seconds(time.total_seconds()), retention_period=Duration.days(FAILURE_QUEUE_DAYS)
    )


def _no_queue() -> Acknowledgment:
    return Acknowledgment(
        id="Serverless::Serverless-LambdaDLQ",
        reason="Its destination of failures keeps each event with its result; a dead-letter queue would get the bare"
        " event once more",
    )


def _no_destination() -> Acknowledgment:
    return Acknowledgment(
        id="Serverless::Serverless-LambdaAsyncFailureDestination",
        reason="Lambda has no destinations for durable functions; their dead-letter queue keeps each failed event",
    )
