"""Rights that a role has for Lambda alone: the function's own code, which has the same role, is denied them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import aws_iam as iam

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import aws_lambda as lambda_
    from constructs import Construct

SEND: Final = ("sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl")
"""What the CDK allows a role for a destination, or a dead-letter queue, of its function."""
CONSUME: Final = (
    *("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"),
    *("sqs:GetQueueAttributes", "sqs:GetQueueUrl"),
)
"""What the CDK allows a role for a queue whose messages Lambda gives to its function."""


def deny_to_code(
    scope: Construct, name: str, *, function: lambda_.IFunction, actions: Sequence[str], resources: Sequence[str]
) -> None:
    """Deny a function's code what Lambda does by its role: only the code's requests carry the function's ARN.

    Lambda's own requests for network interfaces, for the messages of a queue, and to a destination do not carry it. A
    queue's policy cannot tell the two apart: the key works in a role's policies only. The statement is a policy of its
    own: the function waits for the role's, which therefore cannot name the function.
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
