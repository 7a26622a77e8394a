"""Deny a function's code the rights that its role has only for Lambda."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import aws_iam as iam

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import aws_lambda as lambda_
    from constructs import Construct

SEND: Final = ("sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl")
"""The rights that the CDK gives a role for a destination, or a dead-letter queue, of its function."""
CONSUME: Final = (
    *("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"),
    *("sqs:GetQueueAttributes", "sqs:GetQueueUrl"),
)
"""The rights that the CDK gives a role for a queue whose messages Lambda passes to its function."""


def deny_to_code(
    scope: Construct, name: str, *, function: lambda_.IFunction, actions: Sequence[str], resources: Sequence[str]
) -> None:
    """Deny a function's code actions that Lambda performs with its role: only the code's requests carry the function's
    ARN.

    Lambda's own requests for network interfaces, for the messages of a queue, and to a destination do not carry it. A
    queue's policy cannot distinguish the two: the key works only in a role's policies. The statement is in a separate
    policy: the function waits for the role's default policy, which therefore cannot name the function.
    https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html
    """
    statement = iam.PolicyStatement(
        sid="NotTheCode",
        effect=iam.Effect.DENY,
        actions=list(actions),
        resources=list(resources),
        conditions={"ArnEquals": {"lambda:SourceFunctionArn": function.function_arn}},
    )
    role = function.role
    if role is None:
        raise ValueError(f"{function.node.path} has no role to deny {', '.join(actions)} to")
    iam.Policy(scope, name, roles=[role], statements=[statement])
