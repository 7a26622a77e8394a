"""The stack's own key, if the context asks for one, and its users."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

if TYPE_CHECKING:
    from constructs import Construct


def own_key(scope: Construct) -> kms.Key:
    """Create a key for buckets, queues, topic and logs; like the data that it encrypts, it outlives the stack."""
    key = kms.Key(
        scope,
        "Key",
        description="SoAL: checkpoints, scripts, tables, queues, logs",
        enable_key_rotation=True,
        removal_policy=RemovalPolicy.RETAIN,
    )
    # Services use the key in their own name: CloudWatch for log groups and to publish alarms, EventBridge for a rule's
    # dead-letter queue. The actions are those in each service's documentation.
    groups = f"arn:{Aws.PARTITION}:logs:{Aws.REGION}:{Aws.ACCOUNT_ID}:log-group:*"
    _let(
        key,
        f"logs.{Aws.REGION}.amazonaws.com",
        ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*"],
        {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
    )
    for service in ("cloudwatch.amazonaws.com", "events.amazonaws.com"):
        condition = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
        _let(key, service, ["kms:Decrypt", "kms:GenerateDataKey"], condition)
    return key


def _let(key: kms.Key, service: str, actions: list[str], conditions: dict[str, dict[str, str]]) -> None:
    key.add_to_resource_policy(
        iam.PolicyStatement(
            sid=f"Used{service.partition('.')[0].title()}",
            principals=[iam.ServicePrincipal(service)],
            actions=actions,
            resources=["*"],  # in a key's policy: this key
            conditions=conditions,
        )
    )


def key_statements(key: kms.IKey | None, *services: str) -> list[iam.PolicyStatement]:
    """Return a function's rights to use the key through `services`, such as `s3`; it cannot use it directly."""
    if key is None:
        return []
    actions = ["kms:Decrypt", "kms:GenerateDataKey"]
    via = [f"{service}.{Aws.REGION}.amazonaws.com" for service in services]
    conditions = {"StringEquals": {"kms:ViaService": via}}
    return [iam.PolicyStatement(sid="UseKey", actions=actions, resources=[key.key_arn], conditions=conditions)]
