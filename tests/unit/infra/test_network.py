from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    assert sorted(name.rpartition(".")[2] for name in services) == ["glue", "lakeformation", "lambda", "s3"]


def test_both_functions_are_in_it_and_speak_tls_only(full: Synthesised) -> None:
    """Their security group lets nothing in, and out only by port 443."""
    for function in full.of_type("Lambda::Function").values():
        (group,) = function["VpcConfig"]["SecurityGroupIds"]
        properties = full.template["Resources"][group["Fn::GetAtt"][0]]["Properties"]
        assert len(function["VpcConfig"]["SubnetIds"]) == 2
        assert [(rule["FromPort"], rule["ToPort"]) for rule in properties["SecurityGroupEgress"]] == [(443, 443)]
        assert "SecurityGroupIngress" not in properties
