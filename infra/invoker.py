"""The role with which a service invokes the function on its own: one alias, and the queue of what it cannot deliver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_sqs as sqs
    from constructs import Construct


def invoker_role(
    scope: Construct,
    service: str,
    *,
    alias: lambda_.IAlias,
    failures: sqs.IQueue | None = None,
    statements: Iterable[iam.PolicyStatement] = (),
) -> iam.Role:
    """Return a role that only `service` may assume, and only for this account."""
    own = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
    role = iam.Role(scope, "Role", assumed_by=iam.ServicePrincipal(service, conditions=own))
    invoke = iam.PolicyStatement(sid="Invoke", actions=["lambda:InvokeFunction"], resources=[alias.function_arn])
    role.add_to_policy(invoke)
    if failures is not None:
        keep = iam.PolicyStatement(sid="KeepFailed", actions=["sqs:SendMessage"], resources=[failures.queue_arn])
        role.add_to_policy(keep)
    for statement in statements:
        role.add_to_policy(statement)
    return role
