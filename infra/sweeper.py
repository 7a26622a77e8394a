"""The sweeper: the same image under another command, on a schedule, with its own role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import Duration
from constructs import Construct

from infra.function_role import FunctionRole, invoke_every

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aws_cdk import aws_iam as iam
    from aws_cdk import aws_sqs as sqs

    from infra.function_role import Shared

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
        shared: Shared,
        *,
        statements: Iterable[iam.PolicyStatement],
        environment: dict[str, str],
        undelivered: sqs.IQueue,
    ) -> None:
        super().__init__(scope, name)
        minutes = shared.config.sweep_minutes
        sweep = FunctionRole(self, "Sweep", shared, statements, network=shared.network)
        self.role, self.log_group = sweep.role, sweep.log_group
        self.function = sweep.function(
            "Function",
            "handler.functions.sweeper.lambda_handler",
            environment,
            description="SoAL: settles writes of dead runs",
            memory_size=_MEMORY_MB,
            retry_attempts=0,  # the next sweep is the retry
            timeout=Duration.seconds(min(_TIMEOUT_MAX_S, minutes * 60)),
        )
        invoke_every(self, self.function, minutes=minutes, purpose="sweep", undelivered=undelivered)
