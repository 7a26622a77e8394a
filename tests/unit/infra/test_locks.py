"""The stack's DynamoDB table of locks exists on request only, and no role may delete a record in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.lock_services import ATTRIBUTES, KEYS

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised

ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/"
JOB, OTHERS = "RuntimeJobRole", ("SweeperSweepRole", "RedriveAgainRole")


def arn(stack: Synthesised) -> str:
    (name,) = stack.of_type("DynamoDB::Table")
    return f"{ARN}{name.lower()}"


def test_there_is_a_table_only_where_it_is_asked_for(plain: Synthesised) -> None:
    """Without the table, jobs take their turns in the checkpoint bucket."""
    assert not plain.of_type("DynamoDB::Table")
    assert "SW_LOCKS" not in plain.the("Lambda::Function", "Runtime")["Environment"]["Variables"]
    assert not plain.access(JOB).may("dynamodb:PutItem", f"{ARN}x")


def test_the_table_has_the_key_that_the_locks_use(full: Synthesised) -> None:
    """The table is billed by request, has point-in-time recovery, and is protected from deletion."""
    table = full.the("DynamoDB::Table")

    assert (table["KeySchema"], table["AttributeDefinitions"]) == (KEYS, ATTRIBUTES)
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["DeletionProtectionEnabled"] is True


def test_the_job_may_read_and_change_records_and_nobody_may_delete_one(full: Synthesised) -> None:
    """A deleted record would issue its tokens a second time."""
    for action in ("dynamodb:GetItem", "dynamodb:PutItem"):
        assert full.access(JOB).may(action, arn(full))
        assert not full.access(JOB).may(action, f"{ARN}another")
        assert not any(full.access(role).may(action, arn(full)) for role in OTHERS)
    for action in ("dynamodb:DeleteItem", "dynamodb:DeleteTable", "dynamodb:UpdateItem", "dynamodb:Scan"):
        assert not any(full.access(role).may(action, arn(full)) for role in (JOB, *OTHERS))


def test_the_job_is_told_where_the_locks_are(full: Synthesised) -> None:
    """The job gets the table as the default backend."""
    (name,) = full.of_type("DynamoDB::Table")
    variables = full.the("Lambda::Function", "Runtime")["Environment"]["Variables"]

    assert variables["SW_LOCKS"] == {"Fn::Join": ["", ["dynamodb://", {"Ref": name}]]}


def test_a_network_of_its_own_lets_the_table_through_and_no_other(full: Synthesised) -> None:
    """The endpoint accepts only this account's credentials."""
    through = full.endpoint("dynamodb")
    ours = {"aws_PrincipalAccount": "123456789012"}

    for action in ("dynamodb:GetItem", "dynamodb:PutItem"):
        assert through.may(action, arn(full), **ours)
        assert not through.may(action, arn(full))
        assert not through.may(action, f"{ARN}another", **ours)
    assert not through.may("dynamodb:DeleteItem", arn(full), **ours)
