"""The failure queue, which receives every event of the stack that did not become a successful run."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from aws_cdk import Acknowledgment, Aws, Duration, Validations
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.config import FAILURE_QUEUE_DAYS

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms

# The limit of SQS: a failure is an event, which may itself be that large, plus its result.
_MESSAGE_MAX_BYTES: Final = 1_048_576
_NAME_MAX: Final = 80
"""https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html"""
_DIGEST_LENGTH: Final = 8


class FailureQueue(Construct):
    """Keeps failed events for the longest time that SQS allows. `soal redrive` reads it, and with `redrive_attempts`
    the stack's redrive function.

    `for_functions` is the same queue, for grants to a role: the CDK would add rights on the queue's key that apply to
    every service, while `key_statements` grants them only through SQS.
    """

    def __init__(self, scope: Construct, name: str, *, jobs_arn: str | None, key: kms.IKey | None) -> None:
        super().__init__(scope, name)
        self.queue = private_queue(self, "Queue", key=key, source_arn=jobs_arn)
        self.for_functions = without_key(self.queue)
        _end_of_the_line(
            self.queue, "It is where failed events end: destination of failures, dead-letter queue of others"
        )


class ParkedQueue(Construct):
    """Keeps failed events that the redrive function cannot help, so that they do not delay the others."""

    def __init__(self, scope: Construct, name: str, *, key: kms.IKey | None) -> None:
        super().__init__(scope, name)
        self.queue = private_queue(self, "Queue", key=key)
        _end_of_the_line(self.queue, "It is where failed events wait for a person")


class UndeliveredQueue(Construct):
    """Keeps events that EventBridge could not deliver to the stack's own functions (sweeper, redrive), with the reason.

    It is separate from the failure queue: a redrive of these events would start a job with them.
    """

    def __init__(self, scope: Construct, name: str, *, key: kms.IKey | None) -> None:
        super().__init__(scope, name)
        self.queue = private_queue(self, "Queue", key=key)
        _end_of_the_line(self.queue, "It is a dead-letter queue itself")


def job_queue_name(stack_name: str) -> str:
    """Return the name of the queue of jobs. CloudFormation cannot choose it: the queue of jobs and its dead-letter
    queue, the failure queue, refer to each other, and only one of two resources can wait for the other.
    """
    digest = hashlib.sha256(stack_name.encode()).hexdigest()[:_DIGEST_LENGTH]
    name = f"{stack_name}-Jobs"
    return name if len(name) <= _NAME_MAX else f"{stack_name[: _NAME_MAX - _DIGEST_LENGTH - 6]}-{digest}-Jobs"


def queue_arn(name: str) -> str:
    """Return the ARN of a queue of this account and region."""
    return f"arn:{Aws.PARTITION}:sqs:{Aws.REGION}:{Aws.ACCOUNT_ID}:{name}"


def _end_of_the_line(queue: sqs.Queue, reason: str) -> None:
    for rule in ("AwsSolutions::AwsSolutions-SQS3", "Serverless::Serverless-SQSRedrivePolicy"):
        Validations.of(queue).acknowledge(Acknowledgment(id=rule, reason=reason))


def without_key(queue: sqs.Queue) -> sqs.IQueue:
    """Return the queue without a reference to its key."""
    return sqs.Queue.from_queue_arn(queue, "ByArn", queue.queue_arn)


def private_queue(
    scope: Construct,
    name: str,
    *,
    key: kms.IKey | None,
    queue_name: str | None = None,
    source_arn: str | None = None,
    visibility: Duration | None = None,
    dead_letters: sqs.DeadLetterQueue | None = None,
) -> sqs.Queue:
    """Create an encrypted queue that accepts requests only over TLS.

    It is the dead-letter queue of `source_arn` only: by default SQS lets every queue of the account name it, so that
    any principal that may create a queue could send.
    """
    sources = [] if source_arn is None else [sqs.Queue.from_queue_arn(scope, f"{name}Source", source_arn)]
    permission = sqs.RedrivePermission.BY_QUEUE if sources else sqs.RedrivePermission.DENY_ALL
    return sqs.Queue(
        scope,
        name,
        queue_name=queue_name,
        redrive_allow_policy=sqs.RedriveAllowPolicy(redrive_permission=permission, source_queues=sources or None),
        dead_letter_queue=dead_letters,
        encryption=sqs.QueueEncryption.SQS_MANAGED if key is None else sqs.QueueEncryption.KMS,
        encryption_master_key=key,
        enforce_ssl=True,
        max_message_size_bytes=_MESSAGE_MAX_BYTES,
        retention_period=Duration.days(FAILURE_QUEUE_DAYS),
        visibility_timeout=visibility,
    )
