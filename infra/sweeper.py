"""The sweeper: the same image under another command, on a schedule, with its own role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.function_role import FunctionRole, invoke_every, traced
from infra.interfaces import deny_interfaces, interface_statements

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aws_cdk import aws_iam as iam
    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_sqs as sqs

    from infra.config import Config
    from infra.image import Image
    from infra.network import Network

# Eight tables at once, each with the largest part of a log or metadata that a settler holds, take 1,200 MB; and 1,769
# MB give a whole processor.
_MEMORY_MB: Final = 1769
_TIMEOUT_MAX_S: Final = 300


class Sweeper(Construct):
    """Settles the writes of dead runs. Its timeout is at most the interval, so that sweeps do not overlap."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        config: Config,
        image: Image,
        network: Network,
        statements: Iterable[iam.PolicyStatement],
        environment: dict[str, str],
        undelivered: sqs.IQueue,
        key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, name)
        rights = [*statements, *interface_statements(network)]
        sweep = FunctionRole(self, "Sweep", log_days=config.log_retention_days, key=key, statements=rights)
        self.role, self.log_group = sweep.role, sweep.log_group
        self.function = lambda_.DockerImageFunction(
            self,
            "Function",
            architecture=image.architecture,
            code=image.code("handler.functions.sweeper.lambda_handler"),
            description="SoAL: settles writes of dead runs",
            environment=environment,
            environment_encryption=key,
            log_group=self.log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            memory_size=_MEMORY_MB,
            retry_attempts=0,  # the next sweep is the retry
            role=self.role,
            security_groups=network.security_groups,
            timeout=Duration.seconds(min(_TIMEOUT_MAX_S, config.sweep_minutes * 60)),
            tracing=traced(config),
            vpc=network.vpc,
            vpc_subnets=network.subnets,
        )
        invoke_every(self, self.function, minutes=config.sweep_minutes, purpose="sweep", undelivered=undelivered)
        deny_interfaces(self.function, network)
