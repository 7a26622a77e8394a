"""The stack's roles, with and without each of their statements."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.stub import Stubber

from safewriter.objects import Location
from soal.doctor import rights as needs
from soal.doctor.rights import examine_role, requests_of
from tests.support.aws_command import commands, complaint
from tests.support.iam import Access
from tests.support.roles import CHECKPOINTS, JOB, LAKE, ROLES, SCRIPTS, SWEEPER, kept_needs
from tests.support.simulated_iam import simulating
from tests.support.statement import Statement

if TYPE_CHECKING:
    from soal.doctor.finding import Finding

pytestmark = pytest.mark.slow

ARN = "arn:aws:iam::123456789012:role/job"
REQUESTS = {
    role: tuple(
        requests_of(
            listed,
            [
                ("checkpoints", Location(CHECKPOINTS)),
                ("scripts", Location(SCRIPTS)),
                ("data", Location(LAKE, "tables/*")),
            ],
        )
    )
    for role, listed in ((JOB, needs.JOB), (SWEEPER, needs.SWEEPER))
}


def look(access: Access, role: str = JOB) -> list[Finding]:
    found = list(examine_role(simulating({ARN: access}), "role", ARN, REQUESTS[role]))
    wrong = [complaint(one) for each in found for one in commands(each.remedy) if complaint(one)]
    assert not wrong, wrong
    return found


@pytest.mark.parametrize("role", [JOB, SWEEPER])
def test_the_roles_of_the_stack_are_well(role: str) -> None:
    """The stack's roles may make every request."""
    assert [finding.status for finding in look(ROLES[role], role)] == ["ok"]


CASES = [(role, each) for role, access in ROLES.items() for each in access.statements if "s3:" in each.actions[0]]


@pytest.mark.parametrize(("role", "statement"), CASES, ids=lambda value: getattr(value, "sid", value))
def test_a_statement_that_is_missing_is_found(role: str, statement: Statement) -> None:
    """If a recorded request is denied without a statement, its action and bucket are named."""
    less = ROLES[role].without(statement)
    missed = [need for need in kept_needs() if need.role == role and not need.met_by(less)]
    found = look(less, role)
    assert [finding.status for finding in found] == (["fail"] if missed else ["ok"]), found
    if missed:
        assert f"{statement.actions[0]} on {statement.resources[0].partition('/')[0]}" in found[0].detail


@pytest.mark.parametrize("role", [JOB, SWEEPER])
def test_a_role_that_may_do_nothing_is_found_and_the_commands_mend_it(role: str) -> None:
    """Each denied action is a finding; after the findings' commands the role may make every request."""
    found = look(Access(()), role)
    assert {finding.status for finding in found} == {"fail"}
    assert {finding.detail.split()[3] for finding in found} == {request.action for request in REQUESTS[role]}
    documents = [_option(finding.remedy, "--policy-document") for finding in found]
    assert len({_option(finding.remedy, "--policy-name") for finding in found}) == len(found)
    assert [finding.status for finding in look(Access.of(map(json.loads, documents)), role)] == ["ok"]


def _option(remedy: str, name: str) -> str:
    words = shlex.split(remedy)
    return words[words.index(name) + 1]


def test_a_deny_is_not_mended_by_an_allow() -> None:
    """For a Deny the command shows the statement that denies."""
    deny = Statement("No", "Deny", ("s3:PutObject",), ("*",))
    (found,) = look(Access((*ROLES[JOB].statements, deny)))
    assert (found.status, "(explicitDeny)" in found.detail) == ("fail", True)
    assert found.remedy.startswith(f"aws iam simulate-principal-policy --policy-source-arn {ARN} --action-names s3:Put")


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"OrganizationsDecisionDetail": {"AllowedByOrganizations": False}}, "a policy of the organisation"),
        (
            {"PermissionsBoundaryDecisionDetail": {"AllowedByPermissionsBoundary": False}},
            "the permissions boundary",
        ),
    ],
)
def test_who_denies_is_told(result: dict[str, Any], reason: str) -> None:
    """A boundary or the organisation is named as the reason, since a policy of the role would not help."""
    client = boto3.client("iam", region_name="us-east-1")
    request = REQUESTS[JOB][0]
    with Stubber(client) as stubber:
        answer = {"EvalActionName": request.action, "EvalDecision": "implicitDeny", **result}
        stubber.add_response("simulate_principal_policy", {"EvaluationResults": [answer]})
        (found,) = examine_role(client, "role", ARN, [request])
    assert (found.status, f"(denied by {reason})" in found.detail) == ("fail", True), found
    assert "put-role-policy" not in found.remedy


@pytest.mark.parametrize(
    ("code", "status", "remedy"),
    [
        ("AccessDenied", "warn", f"give your own user iam:SimulatePrincipalPolicy on {ARN}"),
        ("NoSuchEntity", "fail", "role"),
    ],
)
def test_a_simulation_that_fails_is_told(code: str, status: str, remedy: str) -> None:
    """A failed simulation is never ok, and a missing role is a failure."""
    client = boto3.client("iam", region_name="us-east-1")
    with Stubber(client) as stubber:
        stubber.add_client_error("simulate_principal_policy", code)
        (found,) = examine_role(client, "role", ARN, REQUESTS[JOB])
    assert (found.status, remedy in found.remedy) == (status, True), found
