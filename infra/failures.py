"""Where failures go: one queue for every event of the stack that could not be turned into a successful run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.config import FAILURE_QUEUE_DAYS

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms

__all__ = ["FailureQueue", "private_queue"]


class FailureQueue(Construct):
    """Keeps what failed with its event, for as long as SQS keeps anything. Nothing reads it by itself: people do."""

    def __init__(self, scope: Construct, name: str, *, key: kms.IKey | None) -> None:
        super().__init__(scope, name)
        self.queue = private_queue(self, "Queue", key=key)
        Validations.of(self.queue).acknowledge(
            Acknowledgment(
                id="AwsSolutions::AwsSolutions-SQS3",
                reason="It is where failed events end: destination of failures, and dead-letter queue of the others",
            )
        )


def private_queue(
    scope: Construct,
    name: str,
    *,
    key: kms.IKey | None,
    visibility: Duration | None = None,
    dead_letters: sqs.DeadLetterQueue | None = None,
) -> sqs.Queue:
    """Make a queue that is encrypted and takes requests over TLS only."""
    return sqs.Queue(
        scope,
        name,
        dead_letter_queue=dead_letters,
        encryption=sqs.QueueEncryption.SQS_MANAGED if key is None else sqs.QueueEncryption.KMS,
        encryption_master_key=key,
        enforce_ssl=True,
        retention_period=Duration.days(FAILURE_QUEUE_DAYS),
        visibility_timeout=visibility,
    )
