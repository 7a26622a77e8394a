"""In each kind of stack, each edge where a service acts on another is allowed, and each Allow belongs to an edge."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.edges import edges, missing
from tests.support.iam import Access

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.cloud import Synthesised

pytestmark = pytest.mark.slow

STACKS = ["plain", "plain_with_key", "full", "full_without_key"]
# Rights that a role uses itself, not on behalf of a service: a queue that the redrive reads, another to which it sends,
# and keys outside the stack.
OF_THE_CODE_BY_NAME = {"TakeFailures", "SetAside", "UseDataKeys", "DecryptSecrets"}
OF_THE_CODE = ("s3:", "dynamodb:", "secretsmanager:", "glue:", "logs:", "xray:", "lambda:InvokeFunction")
ANOTHER = {"aws:SourceAccount": "999999999999"}


@pytest.fixture(params=STACKS)
def stack(request: pytest.FixtureRequest) -> Synthesised:
    found: Synthesised = request.getfixturevalue(request.param)
    return found


def test_each_service_may_do_what_the_stack_wants_of_it(stack: Synthesised) -> None:
    """Alarms may use the topic, rules functions and dead-letter queues, failures a queue, logs and data the key."""
    assert missing(stack) == []


def test_every_kind_of_edge_is_walked(full: Synthesised) -> None:
    """A changed name must not drop an edge from the walk."""
    walked = {(edge.by if edge.by.endswith(".com") else "role", edge.action) for edge in edges(full)}

    assert walked >= {
        ("cloudwatch.amazonaws.com", "sns:Publish"),
        ("cloudwatch.amazonaws.com", "kms:Decrypt"),
        ("events.amazonaws.com", "lambda:InvokeFunction"),
        ("events.amazonaws.com", "sqs:SendMessage"),
        ("events.amazonaws.com", "kms:GenerateDataKey"),
        ("logs.us-east-1.amazonaws.com", "kms:Encrypt"),
        ("lambda.amazonaws.com", "sts:AssumeRole"),
        ("codedeploy.amazonaws.com", "sts:AssumeRole"),
        ("scheduler.amazonaws.com", "sts:AssumeRole"),
        ("states.amazonaws.com", "sts:AssumeRole"),
        ("role", "lambda:InvokeFunction"),
        ("role", "sqs:SendMessage"),
        ("role", "sqs:ReceiveMessage"),
        ("role", "kms:GenerateDataKey"),
        ("role", "ec2:CreateNetworkInterface"),
        ("role", "lambda:UpdateAlias"),
        ("role", "cloudwatch:DescribeAlarms"),
    }


def allows(stack: Synthesised) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each Allow of an edge by its name, with the expected words of the error, and the template without it."""
    for name, resource in stack.template["Resources"].items():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::Lambda::Permission":
            template = copy.deepcopy(stack.template)
            del template["Resources"][name]
            yield name, "lambda:InvokeFunction", template
        for key in {"AssumeRolePolicyDocument", "KeyPolicy", "PolicyDocument"} & properties.keys():
            for number, statement in enumerate(properties[key]["Statement"]):
                first = statement["Action"] if isinstance(statement["Action"], str) else statement["Action"][0]
                of_code = resource["Type"] in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy") and first.startswith(
                    OF_THE_CODE
                )
                if statement["Effect"] == "Deny" or of_code or resource["Type"] == "AWS::EC2::VPCEndpoint":
                    continue
                template = copy.deepcopy(stack.template)
                del template["Resources"][name]["Properties"][key]["Statement"][number]
                yield f"{name} {statement.get('Sid', number)}", first.removesuffix("*"), template


def test_an_allow_that_is_taken_away_is_missed_by_name(stack: Synthesised) -> None:
    """The walk reports the service and the action of each removed Allow, so every Allow belongs to an edge."""
    taken = {
        name: (action, missing(replace(stack, template=template)))
        for name, action, template in allows(stack)
        if name.partition(" ")[2] not in OF_THE_CODE_BY_NAME
    }

    unnoticed = [name for name, (action, found) in taken.items() if not any(action in each for each in found)]

    assert len(taken) >= 6
    assert unnoticed == []


def test_no_other_account_comes_in_by_a_service(full: Synthesised) -> None:
    """CloudWatch and EventBridge may only act for this account: the same request for another account is refused."""
    refused = 0
    for name, document in full.documents().items():
        kind = full.template["Resources"][name]["Type"]
        if kind in {"AWS::SNS::TopicPolicy", "AWS::SQS::QueuePolicy", "AWS::KMS::Key"}:
            for edge in edges(full):
                if edge.by in {"cloudwatch.amazonaws.com", "events.amazonaws.com"}:
                    context = ANOTHER | {"aws:SourceArn": "arn:aws:events:us-east-1:999999999999:rule/x"}
                    assert Access.of([document]).to(edge.by).decides(edge.action, edge.resource, context) is None
                    refused += 1

    assert refused > 0


def test_mail_goes_to_the_topic_of_the_alarms(full: Synthesised) -> None:
    """The subscription belongs to the topic of the alarms."""
    told = {str(each) for alarm in full.of_type("CloudWatch::Alarm").values() for each in alarm["AlarmActions"]}

    assert {str(each["TopicArn"]) for each in full.of_type("SNS::Subscription").values()} == told
