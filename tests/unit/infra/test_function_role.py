"""Each function of the stack has its own role without wildcard actions, and writes to its own log group only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised

ROLES = ["RuntimeJobRole", "SweeperSweepRole"]
SERVICES = {"Deployment": "codedeploy", "Schedules": "scheduler", "Workflow": "states"}


def test_each_function_has_a_role_of_its_own_without_managed_policies(full: Synthesised) -> None:
    """Amazon's basic policy would allow writing to all logs of the account."""
    roles = full.of_type("IAM::Role")
    used = [each["Role"]["Fn::GetAtt"][0] for each in full.of_type("Lambda::Function").values()]

    assert len({*used}) == len(used) == 3
    assert not any("ManagedPolicyArns" in role for role in roles.values())
    for name, role in roles.items():
        (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
        service = SERVICES.get(name.partition("Role")[0], "lambda")
        assert trust["Principal"] == {"Service": f"{service}.amazonaws.com"}
        assert (name in used) is (service == "lambda")


@pytest.mark.parametrize("role", ROLES)
def test_a_function_writes_to_its_own_log_group_only(plain: Synthesised, role: str) -> None:
    """It can neither create a group nor write to another one."""
    (statement,) = (each for each in plain.access(role).statements if each.sid == "WriteLogs")

    assert statement.actions == ("logs:CreateLogStream", "logs:PutLogEvents")
    (arn,) = statement.resources
    assert "*" not in arn.removesuffix(":*")  # the group's streams
    assert role.removesuffix("Role").lower() in arn


@pytest.mark.parametrize("role", [*ROLES, "RedriveAgainRole", "DeploymentRole"])
def test_no_statement_has_a_wildcard_for_an_action(full: Synthesised, role: str) -> None:
    """Statements name their actions; AWS's reference says where `*` may stand for a resource (test_reference.py)."""
    assert not [each for statement in full.access(role).statements for each in statement.actions if "*" in each]


@pytest.mark.parametrize("role", ROLES)
def test_rights_for_network_and_traces_come_only_with_them(plain: Synthesised, full: Synthesised, role: str) -> None:
    """Without a network the role has no network rights, without tracing no tracing rights."""
    assert full.access(role).may("ec2:DescribeSubnets", "*")
    assert not [each for each in plain.access(role).statements if each.actions[0].startswith("ec2:")]
    assert full.access(role).may("xray:PutTraceSegments", "*")
    assert not plain.access(role).may("xray:PutTraceSegments", "*")


def test_logs_are_kept_for_the_days_that_were_asked_for(plain: Synthesised) -> None:
    """No log group keeps its logs for ever."""
    assert {group["RetentionInDays"] for group in plain.of_type("Logs::LogGroup").values()} == {30}
