"""The redrive, with `redrive_attempts` only: a schedule invokes the function that drains the failure queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.environment import redrive_environment
from infra.failures import ParkedQueue
from infra.function_role import FunctionRole, invoke_every

if TYPE_CHECKING:
    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_sqs as sqs

    from infra.environment import Resources
    from infra.function_role import Shared

_MEMORY_MB: Final = 512
_TIMEOUT_S: Final = 300
_ACTIONS: Final = ("ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility")


class Redrive(Construct):
    """The same image under another command. Its role may only receive messages of one queue, send to another (`parked`)
    and invoke one alias. It calls only these services, so it needs no network.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        shared: Shared,
        *,
        alias: lambda_.IAlias,
        failures: sqs.IQueue,
        jobs_arn: str | None,
        key_statements: list[iam.PolicyStatement],
        resources: Resources,
        undelivered: sqs.IQueue,
    ) -> None:
        super().__init__(scope, name)
        minutes = shared.config.redrive_minutes
        self.parked = ParkedQueue(self, "Parked", key=shared.key).queue
        statements = [
            iam.PolicyStatement(
                sid="TakeFailures",
                actions=[f"sqs:{action}" for action in _ACTIONS],
                resources=[failures.queue_arn],
            ),
            iam.PolicyStatement(sid="SetAside", actions=["sqs:SendMessage"], resources=[self.parked.queue_arn]),
            iam.PolicyStatement(sid="InvokeAgain", actions=["lambda:InvokeFunction"], resources=[alias.function_arn]),
            *key_statements,
        ]
        again = FunctionRole(self, "Again", shared, statements, network=None)
        self.function = again.function(
            "Function",
            "handler.functions.redrive.lambda_handler",
            redrive_environment(
                shared.config,
                resources,
                function=alias.function_arn,
                queue=failures.queue_url,
                parked=self.parked.queue_url,
                jobs=jobs_arn,
            ),
            description="SoAL: invokes failed runs again",
            memory_size=_MEMORY_MB,
            retry_attempts=0,  # the next pass is the retry
            timeout=Duration.seconds(_TIMEOUT_S),
        )
        invoke_every(self, self.function, minutes=minutes, purpose="redrive", undelivered=undelivered)
