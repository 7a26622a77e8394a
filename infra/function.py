"""The job's function: its image, its rights, its invocation and the destination of its failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
        durable = config.durable
        # A durable function has a dead-letter queue, and no destinations.
        # https://docs.aws.amazon.com/lambda/latest/dg/durable-invoking.html
        on_failure = destinations.SqsDestination(failures) if durable is None else None
        self.function = job.function(
            # A function cannot become durable, so a durable one needs another logical id.
            "Function" if durable is None else "DurableFunction",
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
