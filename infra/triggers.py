"""The triggers of the function that the context asks for: a schedule, new objects, a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.contradictions import VISIBILITY_IN_TIMEOUTS
from infra.denials import CONSUME, deny_to_code
from infra.failures import private_queue, without_key

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_lambda as lambda_

    from infra.config import Config


class Triggers(Construct):
    """`queue` receives jobs as messages; None without one."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        config: Config,
        alias: lambda_.Alias,
        failures: sqs.IQueue,
        job_queue_name: str,
        key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, name)
        self.queue: sqs.Queue | None = None
        target = targets.LambdaFunction(alias, dead_letter_queue=failures)
        if config.schedule is not None:
            events.Rule(self, "Schedule", schedule=events.Schedule.expression(config.schedule), targets=[target])
        if config.s3_trigger is not None:
            created = _created(config.s3_trigger.bucket, config.s3_trigger.prefix)
            events.Rule(self, "Objects", event_pattern=created, targets=[target])
        if config.queue:
            self.queue = private_queue(
                self,
                "Jobs",
                dead_letters=sqs.DeadLetterQueue(max_receive_count=config.queue_receives, queue=failures),
                key=key,
                queue_name=job_queue_name,
                visibility=Duration.seconds(config.timeout_s * VISIBILITY_IN_TIMEOUTS),
            )
            # Each message is a separate run, which fails or succeeds on its own.
            alias.add_event_source(
                sources.SqsEventSource(without_key(self.queue), batch_size=1, max_concurrency=config.queue_concurrency)
            )
            # Only Lambda receives the messages: the code could receive, and delete, those of other runs.
            jobs = [self.queue.queue_arn]
            deny_to_code(self, "NoMessages", function=alias.lambda_, actions=CONSUME, resources=jobs)
            Validations.of(alias).acknowledge(
                Acknowledgment(
                    id="Serverless::Serverless-LambdaEventSourceMappingDestination",
                    reason="A queue has no destination here: what is tried too often goes to its dead-letter queue",
                )
            )


def _created(bucket: str, prefix: str) -> events.EventPattern:
    detail: dict[str, object] = {"bucket": {"name": [bucket]}}
    if prefix:
        detail["object"] = {"key": [{"prefix": f"{prefix}/"}]}
    return events.EventPattern(source=["aws.s3"], detail_type=["Object Created"], detail=detail)
