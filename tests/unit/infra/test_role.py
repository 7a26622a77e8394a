from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised

ROLES = ["RuntimeJobRole", "SweeperSweepRole"]
# Actions that know no narrower resource.
WITHOUT_RESOURCE = {
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
    "lakeformation:GetDataAccess",
    "xray:PutTelemetryRecords",
    "xray:PutTraceSegments",
}


def test_each_function_has_a_role_of_its_own_without_managed_policies(full: Synthesised) -> None:
    """Amazon's basic policy would allow the logs of the whole account."""
    roles = full.of_type("IAM::Role")

    assert len(roles) == len(full.of_type("Lambda::Function")) == 3
    assert not any("ManagedPolicyArns" in role for role in roles.values())
    for role in roles.values():
        (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}


@pytest.mark.parametrize("role", ROLES)
def test_a_function_writes_to_its_own_log_group_only(plain: Synthesised, role: str) -> None:
    """It can neither make a group nor write to another one."""
    (statement,) = (each for each in plain.access(role).statements if each.sid == "WriteLogs")

    assert statement.actions == ("logs:CreateLogStream", "logs:PutLogEvents")
    (arn,) = statement.resources
    assert "*" not in arn
    assert role.removesuffix("Role").lower() in arn


@pytest.mark.parametrize("role", ROLES)
def test_no_statement_has_a_wildcard_for_an_action_or_for_everything(full: Synthesised, role: str) -> None:
    """Actions are named, and `*` as a resource stands only where the action knows no other."""
    for statement in full.access(role).statements:
        # The CDK's own grant for a queue with a key names two families of actions.
        named = [each for each in statement.actions if each not in ("kms:ReEncrypt*", "kms:GenerateDataKey*")]
        assert not [each for each in named if "*" in each]
        if "*" in statement.resources:
            assert set(statement.actions) <= WITHOUT_RESOURCE


@pytest.mark.parametrize("role", ROLES)
def test_rights_for_network_and_traces_come_only_with_them(plain: Synthesised, full: Synthesised, role: str) -> None:
    """A stack without a network gives no right about networks, one without traces none about traces."""
    assert full.access(role).may("ec2:CreateNetworkInterface", "*")
    assert not plain.access(role).may("ec2:CreateNetworkInterface", "*")
    assert full.access("RuntimeJobRole").may("xray:PutTraceSegments", "*")
    assert not plain.access(role).may("xray:PutTraceSegments", "*")


def test_logs_are_kept_for_the_days_that_were_asked_for(plain: Synthesised) -> None:
    """No log group keeps for ever."""
    assert {group["RetentionInDays"] for group in plain.of_type("Logs::LogGroup").values()} == {30}
