"""The rights that Lambda needs in a function's role to attach it to a network; the function's own code is denied them.

https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

from infra.denials import deny_to_code

if TYPE_CHECKING:
    from aws_cdk import aws_lambda as lambda_

    from infra.network import Network

_LOOK: Final = ("ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets")
_CHANGE: Final = ("ec2:DeleteNetworkInterface", "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses")
_MAKE: Final = "ec2:CreateNetworkInterface"


def interface_statements(network: Network) -> list[iam.PolicyStatement]:
    """Return the rights of a function's role for the network; none without one.

    Lambda creates interfaces in the network's subnets, with its security groups. It needs the other rights on all
    interfaces before any exists: a condition on the subnet could fail the deployment.
    """
    if network.vpc is None:
        return []
    account = f"arn:{Aws.PARTITION}:ec2:{Aws.REGION}:{Aws.ACCOUNT_ID}"
    # Another account may share subnets and groups; their ids are unique.
    anybody = f"arn:{Aws.PARTITION}:ec2:{Aws.REGION}:*"
    interfaces = f"{account}:network-interface/*"
    subnets = [f"{anybody}:subnet/{name}" for name in network.subnet_ids]
    groups = [f"{anybody}:security-group/{group.security_group_id}" for group in network.security_groups or ()]
    return [
        iam.PolicyStatement(sid="SeeInterfaces", actions=list(_LOOK), resources=["*"]),
        iam.PolicyStatement(sid="MakeInterfaces", actions=[_MAKE], resources=[interfaces, *subnets, *groups]),
        iam.PolicyStatement(sid="ChangeInterfaces", actions=list(_CHANGE), resources=[interfaces]),
    ]


def deny_interfaces(function: lambda_.Function, network: Network) -> None:
    """Deny these rights to the function's own code."""
    if network.vpc is not None:
        deny_to_code(function, "NotTheCode", function=function, actions=[*_LOOK, _MAKE, *_CHANGE], resources=["*"])
