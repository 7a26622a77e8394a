from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.cloud import Synthesised


def test_without_a_network_the_functions_are_in_none(plain: Synthesised) -> None:
    """Nothing of EC2 is made, and no function is attached to anything."""
    assert not [kind for kind in plain.types() if kind.startswith("AWS::EC2::")]
    assert not any("VpcConfig" in each for each in plain.of_type("Lambda::Function").values())


def test_the_own_network_has_no_way_to_the_internet(full: Synthesised) -> None:
    """No gateway, no address, no route: S3 and the services that are used are reached by endpoints."""
    kinds = full.types()

    for absent in ("InternetGateway", "NatGateway", "EIP", "Route"):
        assert f"AWS::EC2::{absent}" not in kinds
    services = [full.resolved(each["ServiceName"]) for each in full.of_type("EC2::VPCEndpoint").values()]
    assert sorted(name.rpartition(".")[2] for name in services) == [
        "glue",
        "lakeformation",
        "lambda",
        "s3",
        "secretsmanager",
    ]


def test_both_functions_are_in_it_and_speak_tls_only(full: Synthesised) -> None:
    """Their security group lets nothing in, and out only by port 443. The redrive has no data, and no network."""
    for name, function in full.of_type("Lambda::Function").items():
        if name.startswith("Redrive"):
            assert "VpcConfig" not in function
            continue
        (group,) = function["VpcConfig"]["SecurityGroupIds"]
        properties = full.template["Resources"][group["Fn::GetAtt"][0]]["Properties"]
        assert len(function["VpcConfig"]["SubnetIds"]) == 2
        assert [(rule["FromPort"], rule["ToPort"]) for rule in properties["SecurityGroupEgress"]] == [(443, 443)]
        assert "SecurityGroupIngress" not in properties


def test_an_existing_network_is_used_as_it_is(tmp_path: Path) -> None:
    """Functions go into the named subnets under the named groups; nothing is made, looked up or changed there."""
    from aws_cdk import Stack
    from aws_cdk import aws_lambda as lambda_

    from infra.app import new_app
    from infra.config import Config
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
    network = Network(stack, "Network", config=Config.from_context(context))
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
    assert function["VpcConfig"] == {
        "SecurityGroupIds": ["sg-01234567", "sg-89abcdef"],
        "SubnetIds": ["subnet-01234567", "subnet-89abcdef"],
    }
    assert not [each["Type"] for each in resources if each["Type"].startswith("AWS::EC2::")]
    assert "missing" not in json.loads((tmp_path / "manifest.json").read_text())
