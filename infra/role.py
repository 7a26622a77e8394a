"""A function's role and log group: the role may write there and nothing else, until statements are added."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from aws_cdk import RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aws_cdk import aws_kms as kms

__all__ = ["FunctionRole"]

_NETWORK_ACTIONS: Final = (
    "ec2:CreateNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:DeleteNetworkInterface",
    "ec2:AssignPrivateIpAddresses",
    "ec2:UnassignPrivateIpAddresses",
)
"""What Lambda needs to attach a function to a network; these actions know no narrower resource."""


class FunctionRole(Construct):
    """`role` and `log_group`. Lambda's managed policies are not used: they allow the logs of the whole account."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        log_days: int,
        key: kms.IKey | None,
        statements: Iterable[iam.PolicyStatement],
    ) -> None:
        super().__init__(scope, name)
        self.log_group = logs.LogGroup(self, "Logs", encryption_key=key, removal_policy=RemovalPolicy.DESTROY)
        # Days as CloudFormation takes them; the library knows an enumeration of words for them.
        cast("logs.CfnLogGroup", self.log_group.node.default_child).retention_in_days = log_days
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        self.role.add_to_policy(
            iam.PolicyStatement(
                sid="WriteLogs",
                actions=["logs:CreateLogStream", "logs:PutLogEvents"],
                resources=[self.log_group.log_group_arn],
            )
        )
        for statement in statements:
            self.role.add_to_policy(statement)

    def allow_network(self) -> None:
        """Let Lambda attach the function to a network."""
        self.role.add_to_policy(
            iam.PolicyStatement(sid="AttachToNetwork", actions=list(_NETWORK_ACTIONS), resources=["*"])
        )
