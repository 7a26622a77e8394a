"""Each role of the stack reads exactly the Secrets Manager secrets that it needs; the template holds no value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised

SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:lake/db-AbCdEf"
OTHER = "arn:aws:secretsmanager:us-east-1:123456789012:secret:api-GhIjKl"
JOB, SWEEPER, REDRIVE = "RuntimeJobRole", "SweeperSweepRole", "RedriveAgainRole"
READ = "secretsmanager:GetSecretValue"


def test_each_role_reads_exactly_the_secrets_that_it_needs(full: Synthesised, plain: Synthesised) -> None:
    """The job reads the named secrets, the sweeper those of catalogs; neither reads another one with a similar name."""
    may = {
        role: [arn for arn in (SECRET, OTHER) if full.access(role).may(READ, arn)] for role in (JOB, SWEEPER, REDRIVE)
    }

    assert may == {JOB: [SECRET, OTHER], SWEEPER: [SECRET], REDRIVE: []}
    assert not full.access(JOB).may(READ, SECRET.replace("AbCdEf", "XxXxXx"))
    for action in ("secretsmanager:PutSecretValue", "secretsmanager:DescribeSecret", "secretsmanager:ListSecrets"):
        assert not full.access(JOB).may(action, SECRET)
    assert not plain.access(JOB).may(READ, SECRET)


@pytest.mark.parametrize(("role", "arns"), [(JOB, [SECRET, OTHER]), (SWEEPER, [SECRET])])
def test_the_key_of_secrets_decrypts_nothing_but_them(full: Synthesised, role: str, arns: list[str]) -> None:
    """The key can be used only through Secrets Manager, and only for these secrets."""
    (found,) = (one for one in statements(full, role) if one["Sid"] == "DecryptSecrets")

    assert found["Action"] == "kms:Decrypt"
    assert found["Resource"] == "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
    condition = found["Condition"]["StringEquals"]
    assert as_list(condition["kms:ViaService"]) == ["secretsmanager.us-east-1.amazonaws.com"]
    assert as_list(condition["kms:EncryptionContext:SecretARN"]) == arns


def test_the_template_holds_references_only(full: Synthesised) -> None:
    """The job's function gets all references as they are in the context."""
    function = full.the("Lambda::Function", "Runtime")

    assert json.loads(function["Environment"]["Variables"]["SOAL_SECRETS"]) == {
        "PGPASSWORD": f"{SECRET}#password",
        "API_PASS": OTHER,
    }


def statements(stack: Synthesised, role: str) -> list[dict[str, Any]]:
    (name,) = (key for key in stack.of_type("IAM::Role") if key.startswith(role))
    return [
        one
        for policy in stack.policies_of(name).values()
        for one in policy["PolicyDocument"]["Statement"]
        if "Sid" in one
    ]


def as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
