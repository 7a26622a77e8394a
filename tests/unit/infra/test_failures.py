from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised

SEND = "sqs:SendMessage"


@pytest.fixture(params=["plain", "full", "durable"])
def stack(request: pytest.FixtureRequest) -> Synthesised:
    found: Synthesised = request.getfixturevalue(request.param)
    return found


def test_queues_are_encrypted_and_refuse_requests_without_tls(plain: Synthesised, full: Synthesised) -> None:
    """Under SQS's own key, or under the stack's."""
    for stack in (plain, full):
        queues, policies = stack.of_type("SQS::Queue"), stack.of_type("SQS::QueuePolicy")
        assert all("KmsMasterKeyId" in queue or queue["SqsManagedSseEnabled"] for queue in queues.values())
        refusing = [
            queue["Ref"]
            for policy in policies.values()
            for statement in policy["PolicyDocument"]["Statement"]
            for queue in policy["Queues"]
            if statement["Effect"] == "Deny" and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        ]
        assert sorted(refusing) == sorted(queues)


def test_queues_are_lambdas_business_and_not_the_codes(stack: Synthesised) -> None:
    """Lambda sends failures and takes jobs by the role; the function's own requests, which name it, are denied."""
    (name,) = (key for key in stack.of_type("Lambda::Function") if key.startswith("Runtime"))
    access = stack.access("RuntimeJobRole")
    code = {"lambda_SourceFunctionArn": f"arn:aws:lambda:us-east-1:123456789012:function:{name.lower()}"}
    rights = [
        (action, resource)
        for each in access.statements
        for action in each.actions
        for resource in each.resources
        if each.effect == "Allow" and action.startswith("sqs:")
    ]

    assert {action for action, _ in rights} >= {SEND}
    assert ("sqs:ReceiveMessage" in {action for action, _ in rights}) is bool(
        stack.of_type("Lambda::EventSourceMapping")
    )
    for action, queue in rights:
        assert access.may(action, queue)
        assert not access.may(action, queue, **code)


def test_only_services_send_to_the_failure_queue(stack: Synthesised) -> None:
    """A redrive starts what stands there: of the roles only the job's may send, for Lambda, and of others EventBridge
    for the stack's own rules.
    """
    (queue,) = (name for name in stack.of_type("SQS::Queue") if name.startswith("Failures"))
    arn = f"arn:aws:sqs:us-east-1:123456789012:{queue.lower()}"
    senders = [role for role in stack.of_type("IAM::Role") if stack.access(role).may(SEND, arn)]
    opened = [
        statement
        for policy in stack.of_type("SQS::QueuePolicy").values()
        if {"Ref": queue} in policy["Queues"]
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow"
    ]

    assert [role for role in senders if not role.startswith("RuntimeJobRole")] == []
    assert len(senders) == 1
    for statement in opened:
        assert (statement["Action"], statement["Principal"]) == (SEND, {"Service": "events.amazonaws.com"})
        assert statement["Condition"]["ArnEquals"]["aws:SourceArn"]["Fn::GetAtt"][0] in stack.of_type("Events::Rule")
