"""The redrive, with `redrive_attempts` only: a schedule invokes the function that drains the failure queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.environment import redrive_environment
from infra.failures import ParkedQueue
from infra.function_role import FunctionRole, invoke_every, traced

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_sqs as sqs

    from infra.config import Config
    from infra.environment import Resources
    from infra.image import Image

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
        *,
        config: Config,
        image: Image,
        alias: lambda_.IAlias,
        failures: sqs.IQueue,
        jobs_arn: str | None,
        key_statements: list[iam.PolicyStatement],
        resources: Resources,
        undelivered: sqs.IQueue,
        key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, name)
        self.parked = ParkedQueue(self, "Parked", key=key).queue
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
        again = FunctionRole(self, "Again", log_days=config.log_retention_days, key=key, statements=statements)
        self.function = lambda_.DockerImageFunction(
            self,
            "Function",
            architecture=image.architecture,
            code=image.code("handler.functions.redrive.lambda_handler"),
            description="SoAL: invokes failed runs again",
            environment=redrive_environment(
                config,
                resources,
                function=alias.function_arn,
                queue=failures.queue_url,
                parked=self.parked.queue_url,
                jobs=jobs_arn,
            ),
            environment_encryption=key,
            log_group=again.log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            memory_size=_MEMORY_MB,
            retry_attempts=0,  # the next pass is the retry
            role=again.role,
            timeout=Duration.seconds(_TIMEOUT_S),
            tracing=traced(config),
        )
        invoke_every(self, self.function, minutes=config.redrive_minutes, purpose="redrive", undelivered=undelivered)
