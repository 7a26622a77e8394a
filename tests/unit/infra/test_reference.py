"""Check every statement of every policy against AWS's own reference of actions, resources and condition keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.authorization import faults, has_key
from tests.support.iam import Access
from tests.support.statement import Statement

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised

ROLE = "arn:aws:iam::123456789012:role/x"


@pytest.mark.parametrize("name", ["plain", "plain_with_key", "full", "full_without_key"])
def test_each_statement_means_to_aws_what_it_says(request: pytest.FixtureRequest, name: str) -> None:
    """Actions exist and support the named resources and condition keys; `*` is only for actions without resources."""
    stack: Synthesised = request.getfixturevalue(name)
    found = [
        f"{owner} {statement.get('Sid', number)}: {fault}"
        for owner, document in stack.documents().items()
        for number, statement in enumerate(document["Statement"])
        for fault in faults(
            Statement.of({"Resource": ROLE, **statement}),
            own=stack.template["Resources"][owner]["Type"] == "AWS::KMS::Key",
        )
    ]

    assert len(stack.documents()) > 5
    assert found == []


def statement(action: str, resource: str, condition: dict[str, Any] | None = None, effect: str = "Allow") -> Statement:
    return Statement.of({"Effect": effect, "Action": action, "Resource": resource, "Condition": condition or {}})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (statement("s3:ListUploads", "*"), "there is no such action"),
        (
            statement("s3:ListBucketMultipartUploads", "arn:aws:s3:::lake", {"StringLike": {"s3:prefix": "tables/*"}}),
            "s3:ListBucketMultipartUploads: has no condition key s3:prefix",
        ),
        (statement("s3:GetObject", "arn:aws:s3:::lake"), "s3:GetObject: takes none of arn:aws:s3:::lake"),
        (statement("s3:ListBucket", "arn:aws:s3:::lake/tables/*"), "none of s3:ListBucket takes such a resource"),
        (statement("ec2:DescribeSubnets", "arn:aws:ec2:us-east-1:1:subnet/a"), "takes none of"),
        (statement("ec2:DeleteNetworkInterface", "*"), "has resources (network-interface), and is allowed on *"),
        (
            statement(
                "ec2:CreateNetworkInterface",
                "arn:aws:ec2:us-east-1:1:network-interface/*",
                {"ArnEquals": {"ec2:Subnet": "arn:aws:ec2:us-east-1:1:subnet/a"}},
            ),
            "has no condition key ec2:Subnet on network-interface",
        ),
        (
            statement("s3:PutObject", "arn:aws:s3:::lake/*", {"NumericLessThan": {"s3:if-none-match": "1"}}, "Deny"),
            "s3:if-none-match is no value for NumericLessThan",
        ),
        (
            statement("s3:GetObject", "arn:aws:s3:::lake/*", {"Null": {"s3:if-none-match": "true"}}, "Deny"),
            "has no condition key s3:if-none-match",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_is_named(wrong: Statement, said: str) -> None:
    """The error names an unknown action, a key that the action lacks, or a resource or operator that does not fit."""
    assert any(said in fault for fault in faults(wrong))


@pytest.mark.parametrize(
    "right",
    [
        statement("s3:ListBucket", "arn:aws:s3:::lake", {"StringLike": {"s3:prefix": "tables/*"}}),
        statement("s3:*", "arn:aws:s3:::lake/*", {"NumericLessThan": {"s3:TlsVersion": 1.2}}, "Deny"),
        statement("kms:ReEncrypt*", "arn:aws:kms:us-east-1:1:key/a", {"StringEquals": {"kms:ViaService": "sqs"}}),
        statement("ec2:DescribeSubnets", "*", {"ArnEquals": {"lambda:SourceFunctionArn": "arn"}}),
        statement("logs:PutLogEvents", "arn:aws:logs:us-east-1:1:log-group:a:*"),
        statement("lambda:InvokeFunction", "arn:aws:lambda:us-east-1:1:function:a:live"),
        statement("glue:GetTable", "arn:aws:glue:us-east-1:1:table/sales/*"),
    ],
    ids=lambda each: each.actions[0],
)
def test_what_aws_understands_is_no_mistake(right: Statement) -> None:
    """The check accepts wildcards in actions and ARNs, global condition keys, and ARNs below a resource."""
    assert list(faults(right)) == []


def test_a_request_carries_only_the_keys_of_its_action() -> None:
    """As on AWS, a statement about another key allows nothing: a caller cannot add the key to its request."""
    access = Access.of(
        [
            {
                "Statement": {
                    "Effect": "Allow",
                    "Action": ["s3:ListBucket", "s3:ListBucketMultipartUploads"],
                    "Resource": "arn:aws:s3:::lake",
                    "Condition": {"StringLike": {"s3:prefix": ["tables/*"]}},
                }
            }
        ]
    )

    assert access.may("s3:ListBucket", "arn:aws:s3:::lake", s3_prefix="tables/t")
    assert not access.may("s3:ListBucketMultipartUploads", "arn:aws:s3:::lake", s3_prefix="tables/t")
    assert has_key("s3:ListBucket", "s3:prefix")
    assert has_key("sns:Publish", "aws:SourceAccount")
