"""The stack's own key, if one is wanted, and who may use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

if TYPE_CHECKING:
    from constructs import Construct

__all__ = ["key_statements", "own_key"]


def own_key(scope: Construct) -> kms.Key:
    """Make a key for buckets, queues, topic and logs; like what it encrypts it outlives the stack."""
    key = kms.Key(
        scope,
        "Key",
        description="SoAL: checkpoints, scripts, tables, queues, logs",
        enable_key_rotation=True,
        removal_policy=RemovalPolicy.RETAIN,
    )
    # CloudWatch encrypts log groups and publishes alarms, EventBridge sends to the failure queue: each as itself.
    groups = f"arn:{Aws.PARTITION}:logs:{Aws.REGION}:{Aws.ACCOUNT_ID}:*"
    ours = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
    for service, conditions in (
        (f"logs.{Aws.REGION}.amazonaws.com", {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}}),
        ("cloudwatch.amazonaws.com", ours),
        ("events.amazonaws.com", ours),
    ):
        key.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal(service)],
                actions=["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"],
                resources=["*"],  # in a key's policy: this key
                conditions=conditions,
            )
        )
    return key


def key_statements(key: kms.IKey | None) -> list[iam.PolicyStatement]:
    """Return what a function needs to read and write what is encrypted with the key."""
    if key is None:
        return []
    return [iam.PolicyStatement(sid="UseKey", actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[key.key_arn])]
