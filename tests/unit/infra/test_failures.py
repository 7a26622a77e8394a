"""The stack's queues of failures and jobs are encrypted, and take messages from the stack's own senders only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from infra.failures import job_queue_name

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised

SEND = "sqs:SendMessage"


@pytest.fixture(params=["plain", "full", "durable"])
def stack(request: pytest.FixtureRequest) -> Synthesised:
    found: Synthesised = request.getfixturevalue(request.param)
    return found


def test_queues_are_encrypted_and_refuse_requests_without_tls(plain: Synthesised, full: Synthesised) -> None:
    """They use SQS's own key or the stack's."""
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
    """Lambda sends failures and receives jobs with the role; the function's own requests are denied by their ARN."""
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


def test_no_queue_is_the_dead_letter_queue_of_a_foreign_one(stack: Synthesised) -> None:
    """SQS would let any queue of the account name one of the stack's, so that its senders could start jobs."""
    queues = stack.of_type("SQS::Queue")
    sources = {
        name: stack.resolved(queue["RedriveAllowPolicy"].get("sourceQueueArns", [])) for name, queue in queues.items()
    }
    ours = [
        f"arn:aws:sqs:us-east-1:123456789012:{queue['QueueName']}" for queue in queues.values() if "QueueName" in queue
    ]

    assert all(
        queue["RedriveAllowPolicy"]["redrivePermission"] == ("byQueue" if sources[name] else "denyAll")
        for name, queue in queues.items()
    )
    assert {name: arns for name, arns in sources.items() if arns} == (
        {name: ours for name in queues if name.startswith("Failures")} if ours else {}
    )
    assert len(ours) == len(stack.of_type("Lambda::EventSourceMapping"))


def test_only_services_send_to_the_failure_queue(stack: Synthesised) -> None:
    """A redrive starts every message in the queue: only the job's role (for Lambda), Scheduler's, and EventBridge, for
    the stack's own rules, may send.
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

    assert [role.startswith("RuntimeJobRole") for role in senders if not role.startswith("SchedulesRole")] == [True]
    for statement in opened:
        assert (statement["Action"], statement["Principal"]) == (SEND, {"Service": "events.amazonaws.com"})
        assert statement["Condition"]["ArnEquals"]["aws:SourceArn"]["Fn::GetAtt"][0] in stack.of_type("Events::Rule")


def test_stacks_with_long_names_have_queues_of_jobs_of_their_own() -> None:
    """SQS allows 80 characters; a digest of the whole name keeps two stacks with truncated names apart."""
    one, other = (job_queue_name(f"{'S' * 127}{end}") for end in "ab")

    assert (len(one), one == other, job_queue_name("Nightly")) == (80, False, "Nightly-Jobs")
