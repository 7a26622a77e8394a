"""The stack's optional network has no way to the internet, and its endpoints pass no more than the roles may do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from infra.context import read_context
from infra.network import _out_of_reach
from tests.unit.infra.conftest import FULL

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.cloud import Synthesised
    from tests.support.statement import Statement

GLUE = "arn:aws:glue:us-east-1:123456789012"
LAMBDA = "arn:aws:lambda:us-east-1:123456789012"


def test_without_a_network_the_functions_are_in_none(plain: Synthesised) -> None:
    """The stack creates no EC2 resource, and attaches no function to a network."""
    assert not [kind for kind in plain.types() if kind.startswith("AWS::EC2::")]
    assert not any("VpcConfig" in each for each in plain.of_type("Lambda::Function").values())


def test_the_own_network_has_no_way_to_the_internet(full: Synthesised) -> None:
    """The network has no gateway, address or route: functions reach S3 and the other services through endpoints."""
    kinds = full.types()

    for absent in ("InternetGateway", "NatGateway", "EIP", "Route"):
        assert f"AWS::EC2::{absent}" not in kinds
    services = [full.resolved(each["ServiceName"]) for each in full.of_type("EC2::VPCEndpoint").values()]
    assert sorted(name.rpartition(".")[2] for name in services) == ["dynamodb", "glue", "s3", "secretsmanager"]


def test_both_functions_are_in_it_and_speak_tls_only(full: Synthesised) -> None:
    """Their security group allows no inbound traffic, and outbound only port 443. The redrive needs no network."""
    for name, function in full.of_type("Lambda::Function").items():
        if name.startswith("Redrive"):
            assert "VpcConfig" not in function
            continue
        (group,) = function["VpcConfig"]["SecurityGroupIds"]
        properties = full.template["Resources"][group["Fn::GetAtt"][0]]["Properties"]
        assert len(function["VpcConfig"]["SubnetIds"]) == 2
        assert [(rule["FromPort"], rule["ToPort"]) for rule in properties["SecurityGroupEgress"]] == [(443, 443)]
        assert "SecurityGroupIngress" not in properties


def rights_of(stack: Synthesised, service: str) -> list[Statement]:
    """Return each right of job and sweeper on a service, one action on one resource."""
    return [
        single
        for role in ("RuntimeJobRole", "SweeperSweepRole")
        for single in stack.access(role).single().statements
        if single.effect == "Allow" and single.actions[0].startswith(f"{service}:")
    ]


@pytest.mark.parametrize(
    ("name", "service", "others"),
    [
        ("full", "s3", ["arn:aws:s3:::another/x", "arn:aws:s3:::my-lake-2/x", "arn:aws:s3:::another"]),
        ("full", "dynamodb", ["arn:aws:dynamodb:us-east-1:123456789012:table/another"]),
        ("full", "glue", [f"{GLUE}:table/hr/t", f"{GLUE}:database/hr", "arn:aws:glue:us-east-1:999999999999:catalog"]),
        ("continuing", "lambda", [f"{LAMBDA}:function:another", f"{LAMBDA}:function:another:live"]),
        ("full", "secretsmanager", ["arn:aws:secretsmanager:us-east-1:123456789012:secret:another-AbCdEf"]),
        ("durable", "lambda", [f"{LAMBDA}:function:another:7/durable-execution/nightly/3f2c"]),
    ],
)
def test_an_endpoint_lets_through_what_the_roles_may_and_no_more(
    request: pytest.FixtureRequest, name: str, service: str, others: list[str]
) -> None:
    """Endpoints allow the named resources for this account: data cannot leave, nor can foreign credentials be used."""
    stack: Synthesised = request.getfixturevalue(name)
    through, rights = stack.endpoint(service), rights_of(stack, service)
    ours, theirs = {"aws_PrincipalAccount": "123456789012"}, {"aws_PrincipalAccount": "999999999999"}

    assert rights
    for right in rights:
        assert through.may(right.actions[0], right.resources[0], **ours)
        assert not through.may(right.actions[0], right.resources[0], **theirs)
        assert not through.may(right.actions[0], right.resources[0])
        assert not any(through.may(right.actions[0], other, **ours) for other in others)
    for statement in through.statements:
        assert {*statement.actions} <= {right.actions[0] for right in rights}
        assert "*" not in statement.resources


def test_a_function_that_calls_itself_has_a_way_to_lambda(durable: Synthesised) -> None:
    """A durable function keeps its steps by its own requests, without which no execution could continue."""
    (name,) = (key for key in durable.of_type("Lambda::Function") if key.startswith("Runtime"))
    own = f"{LAMBDA}:function:{name.lower()}:7/durable-execution/nightly/3f2c"

    for action in ("lambda:CheckpointDurableExecution", "lambda:GetDurableExecutionState"):
        assert durable.endpoint("lambda").may(action, own, aws_PrincipalAccount="123456789012")


@pytest.mark.parametrize("name", ["Runtime", "Sweeper"])
def test_interfaces_are_lambdas_business_and_not_the_codes(full: Synthesised, name: str) -> None:
    """Lambda creates them in the stack's subnets and groups with the role; the function's own requests are denied."""
    (logical,) = (key for key in full.of_type("Lambda::Function") if key.startswith(name))
    function = full.of_type("Lambda::Function")[logical]
    access = full.access(f"{name}{'Job' if name == 'Runtime' else 'Sweep'}Role")
    base = "arn:aws:ec2:us-east-1:123456789012:"
    subnets = full.resolved(function["VpcConfig"]["SubnetIds"])
    code = {"lambda_SourceFunctionArn": f"arn:aws:lambda:us-east-1:123456789012:function:{logical.lower()}"}

    for resource in ("network-interface/eni-1", *(f"subnet/{subnet}" for subnet in subnets)):
        assert access.may("ec2:CreateNetworkInterface", base + resource)
        assert not access.may("ec2:CreateNetworkInterface", base + resource, **code)
    for resource in ("subnet/subnet-another", "security-group/sg-another"):
        assert not access.may("ec2:CreateNetworkInterface", base + resource)
    for action in ("DeleteNetworkInterface", "AssignPrivateIpAddresses", "UnassignPrivateIpAddresses"):
        assert access.may(f"ec2:{action}", f"{base}network-interface/eni-1")
        assert not access.may(f"ec2:{action}", "arn:aws:ec2:us-east-1:999999999999:network-interface/eni-1")
        assert not access.may(f"ec2:{action}", f"{base}network-interface/eni-1", **code)
    for action in ("DescribeNetworkInterfaces", "DescribeSubnets"):
        assert access.may(f"ec2:{action}", "*")
        assert not access.may(f"ec2:{action}", "*", **code)


def test_an_existing_network_is_used_as_it_is(tmp_path: Path) -> None:
    """Functions use the named subnets and groups; the stack creates, looks up and changes nothing there."""
    from aws_cdk import Stack
    from aws_cdk import aws_lambda as lambda_

    from infra.app import new_app
    from infra.context import read_context
    from infra.network import Network

    context = {
        "network": "existing",
        "vpc_id": "vpc-01234567",
        "subnet_ids": "subnet-01234567,subnet-89abcdef",
        "availability_zones": "eu-west-1a,eu-west-1b",
        "security_group_ids": "sg-01234567,sg-89abcdef",
    }
    app = new_app(outdir=str(tmp_path))
    stack = Stack(app, "Networked")
    network = Network(stack, "Network", config=read_context(context))
    lambda_.Function(
        stack,
        "Function",
        code=lambda_.Code.from_inline("pass"),
        handler="index.handler",
        runtime=lambda_.Runtime.PYTHON_3_13,
        security_groups=network.security_groups,
        vpc=network.vpc,
        vpc_subnets=network.subnets,
    )
    app.synth()

    resources = json.loads((tmp_path / "Networked.template.json").read_text())["Resources"].values()
    (function,) = (each["Properties"] for each in resources if each["Type"] == "AWS::Lambda::Function")
    assert network.subnet_ids == ["subnet-01234567", "subnet-89abcdef"]
    assert function["VpcConfig"] == {
        "SecurityGroupIds": ["sg-01234567", "sg-89abcdef"],
        "SubnetIds": ["subnet-01234567", "subnet-89abcdef"],
    }
    assert not [each["Type"] for each in resources if each["Type"].startswith("AWS::EC2::")]
    assert "missing" not in json.loads((tmp_path / "manifest.json").read_text())


def test_what_the_own_network_does_not_reach_is_told(full: Synthesised, monkeypatch: pytest.MonkeyPatch) -> None:
    """Synthesis warns about a catalog's server, and about secrets outside the stack's region, known or not."""
    assert "do not reach PYICEBERG_CATALOG__LAKE__URI;" in full.warnings
    config = read_context(FULL)

    monkeypatch.setenv("CDK_DEFAULT_REGION", "us-east-1")
    assert _out_of_reach(config) == ["PYICEBERG_CATALOG__LAKE__URI"]
    monkeypatch.setenv("CDK_DEFAULT_REGION", "eu-west-1")
    assert _out_of_reach(config)[1:] == ["secrets of us-east-1"]
