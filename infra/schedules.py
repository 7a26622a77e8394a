"""Named schedules: each runs a script of its own, with arguments, under a run key of its name and its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from infra.invoker import invoker_role

if TYPE_CHECKING:
    from aws_cdk import aws_iam as iam
    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_sqs as sqs

    from infra.config import Config

_TIME = "<aws.scheduler.scheduled-time>"
"""EventBridge Scheduler replaces it in an input, in ISO 8601: it is the same in each delivery of an event."""


class Schedules(Construct):
    """They invoke the alias; an event that Scheduler cannot deliver goes to the failure queue."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        config: Config,
        alias: lambda_.IAlias,
        scripts_uri: str,
        failures: sqs.IQueue,
        key_statements: list[iam.PolicyStatement],
    ) -> None:
        super().__init__(scope, name)
        role = invoker_role(self, "scheduler.amazonaws.com", alias=alias, failures=failures, statements=key_statements)
        for job, one in config.schedules.items():
            event = {
                "entryPoint": f"s3://{scripts_uri}/{one.script}",
                "entryPointArguments": list(one.arguments),
                "name": job,
                "clientToken": f"{job}-{_TIME}",
            }
            scheduler.CfnSchedule(
                self,
                job,
                description=f"SoAL: {job}",
                flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
                schedule_expression=one.schedule,
                schedule_expression_timezone=one.timezone,
                target=scheduler.CfnSchedule.TargetProperty(
                    arn=alias.function_arn,
                    role_arn=role.role_arn,
                    input=Stack.of(self).to_json_string(event),
                    dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(arn=failures.queue_arn),
                    retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                        maximum_event_age_in_seconds=config.max_event_age_s
                    ),
                ),
            ).node.add_dependency(role)
