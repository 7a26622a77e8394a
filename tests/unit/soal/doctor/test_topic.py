"""On moto: the topic of a stack's alarms, correct and each thing wrong once."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from soal.doctor.stack import examine_topic
from tests.support.cloud import ACCOUNT, kept
from tests.unit.soal.doctor.findings import STACK, TOPIC, checked, told

if TYPE_CHECKING:
    from collections.abc import Iterator

FROM_CLOUDWATCH = {
    "Effect": "Allow",
    "Principal": {"Service": "cloudwatch.amazonaws.com"},
    "Action": "sns:Publish",
    "Resource": TOPIC,
}


@pytest.fixture(autouse=True)
def amazon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("AWS_ENDPOINT_URL")  # moto answers at Amazon's own addresses only
    with mock_aws():
        yield


def make_topic(*statements: dict[str, Any]) -> Any:
    sns = boto3.client("sns")
    policy = {"Version": "2012-10-17", "Statement": [*statements]}
    sns.create_topic(Name="alarms", Attributes={"Policy": json.dumps(policy)})
    return sns


def test_a_topic_that_somebody_hears() -> None:
    """A topic with the stack's policy and a confirmed subscription is ok."""
    (policy,) = kept().of_type("SNS::TopicPolicy").values()
    statements = [
        json.loads(json.dumps(each).replace(each["Resource"], TOPIC))
        for each in kept().resolved(policy["PolicyDocument"])["Statement"]
    ]
    sns = make_topic(*statements)
    assert told(examine_topic(sns, STACK)) == [("alarm topic", "ok"), ("subscriptions", "warn")]
    sns.subscribe(TopicArn=TOPIC, Protocol="sqs", Endpoint=f"arn:aws:sqs:us-east-1:{ACCOUNT}:q")
    assert told(examine_topic(sns, STACK)) == [("alarm topic", "ok"), ("subscriptions", "ok")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statements", "status"),
    [
        ([], "fail"),
        ([FROM_CLOUDWATCH], "ok"),
        ([{**FROM_CLOUDWATCH, "Principal": {"AWS": "*"}, "Action": ["SNS:Subscribe", "SNS:Publish"]}], "ok"),
        ([{**FROM_CLOUDWATCH, "Principal": {"Service": "events.amazonaws.com"}}], "fail"),
        ([{**FROM_CLOUDWATCH, "Action": "sns:Subscribe"}], "fail"),
        ([{**FROM_CLOUDWATCH, "Resource": f"{TOPIC}-other"}], "fail"),
        ([FROM_CLOUDWATCH, {**FROM_CLOUDWATCH, "Effect": "Deny", "Principal": "*"}], "fail"),
        ([{**FROM_CLOUDWATCH, "Condition": {"StringEquals": {"AWS:SourceOwner": ACCOUNT}}}], "ok"),
        ([{**FROM_CLOUDWATCH, "Condition": {"StringEquals": {"aws:SourceAccount": "999999999999"}}}], "fail"),
        (
            [
                {
                    **FROM_CLOUDWATCH,
                    "Condition": {"ArnLike": {"aws:SourceArn": f"arn:aws:cloudwatch:us-east-1:{ACCOUNT}:alarm:Soal-*"}},
                }
            ],
            "ok",
        ),
        ([{**FROM_CLOUDWATCH, "Condition": {"StringEquals": {"aws:PrincipalOrgID": "o-1"}}}], "fail"),
    ],
)
def test_the_policy_of_the_topic_decides(statements: list[dict[str, Any]], status: str) -> None:
    """Principal, action, topic and conditions decide; the command keeps existing statements and repairs the policy."""
    sns = make_topic(*statements)
    found = checked(examine_topic(sns, STACK))[0]
    assert (found.name, found.status) == ("alarm topic", status), found
    if status == "fail" and not any(each["Effect"] == "Deny" for each in statements):
        wanted = shlex.split(found.remedy)[-1]
        sns.set_topic_attributes(TopicArn=TOPIC, AttributeName="Policy", AttributeValue=wanted)
        assert json.loads(wanted)["Statement"][:-1] == statements
        assert checked(examine_topic(sns, STACK))[0].status == "ok"


def test_a_topic_under_the_key_of_aws_is_mute() -> None:
    """A topic under the AWS managed key is a failure: CloudWatch cannot use that key."""
    sns = make_topic(FROM_CLOUDWATCH)
    sns.set_topic_attributes(TopicArn=TOPIC, AttributeName="KmsMasterKeyId", AttributeValue="alias/aws/sns")
    found = checked(examine_topic(sns, STACK))[0]
    assert (found.status, "alias/aws/sns" in found.detail) == ("fail", True)


def test_a_topic_that_is_gone() -> None:
    """A missing topic is a failure, and no further check of it runs."""
    assert told(examine_topic(boto3.client("sns"), STACK)) == [("alarm topic", "fail")]


def test_a_subscription_that_waits_for_its_confirmation() -> None:
    """A pending subscription is reported with its receiver, who must confirm it."""
    sns = boto3.client("sns")
    with Stubber(sns) as stubber:
        attributes = {"Policy": json.dumps({"Statement": [FROM_CLOUDWATCH]})}
        stubber.add_response("get_topic_attributes", {"Attributes": attributes})
        pending = {"SubscriptionArn": "PendingConfirmation", "Protocol": "email", "Endpoint": "ops@example.org"}
        stubber.add_response("list_subscriptions_by_topic", {"Subscriptions": [pending]})
        found = checked(examine_topic(sns, STACK))[-1]
    assert (found.status, "ops@example.org has not confirmed" in found.detail) == ("warn", True)
