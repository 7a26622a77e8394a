"""Events that the account's own services make reach the handler's parser: S3, SNS, SQS and Step Functions."""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from handler.input_errors import NoJob
from handler.request.event import parse_event
from handler.settings import read_settings
from infra.workflow import definition
from tests.support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from handler.request.event import Request

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SETTINGS = read_settings({"SW_CHECKPOINT_BUCKET": "checkpoints", "SOAL_ENTRY_POINT": "s3://scripts/on_event.py"})


def invoked(message: dict[str, Any]) -> dict[str, Any]:
    """Return the event of a message, as Lambda's mapping makes it of what it receives."""
    return {"Records": [{"eventSource": "aws:sqs", "messageId": message["MessageId"], "body": message["Body"]}]}


def policy(service: str, action: str) -> str:
    """Return the policy by which a service may use what it is of."""
    allowed = {"Effect": "Allow", "Principal": {"Service": f"{service}.amazonaws.com"}, "Action": action}
    whose = {} if service == "states" else {"Resource": "*"}
    return json.dumps({"Version": "2012-10-17", "Statement": [{**allowed, **whose}]})


def received(sqs: Any, queue: str, count: int) -> list[dict[str, Any]]:
    """Return `count` messages of a queue, which stay in it."""
    found: dict[str, dict[str, Any]] = {}

    def are_there() -> bool:
        answer = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, VisibilityTimeout=0, WaitTimeSeconds=1)
        found.update({message["MessageId"]: message for message in answer.get("Messages", [])})
        return len(found) >= count

    assert until(are_there), found
    return list(found.values())


@pytest.mark.parametrize("by_topic", [False, True], ids=["S3, SQS", "S3, SNS, SQS"])
def test_s3_s_messages_are_runs_and_its_test_is_none(client: Callable[[str], Any], *, by_topic: bool) -> None:
    """S3 sends its test when the notification is made, then a message for each object, which is a run of its own."""
    name = f"events-{uuid.uuid4().hex[:12]}"
    s3, sqs, sns = client("s3"), client("sqs"), client("sns")
    queue = sqs.create_queue(QueueName=name)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sender = "sns" if by_topic else "s3"
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy(sender, "sqs:SendMessage")})
    destination = {"QueueConfigurations": [{"QueueArn": arn, "Events": ["s3:ObjectCreated:*"]}]}
    if by_topic:
        topic = sns.create_topic(Name=name, Attributes={"Policy": policy("s3", "sns:Publish")})["TopicArn"]
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
        destination = {"TopicConfigurations": [{"TopicArn": topic, "Events": ["s3:ObjectCreated:*"]}]}
    s3.create_bucket(Bucket=name)
    s3.put_bucket_notification_configuration(Bucket=name, NotificationConfiguration=destination)
    for day in (1, 2):
        s3.put_object(Bucket=name, Key=f"day={day}/a.csv", Body=b"x")

    requests: list[Request] = []
    messages = received(sqs, queue, 3)
    sqs.delete_queue(QueueUrl=queue)  # the account's other tests count what the stack leaves
    for message in messages:
        with suppress(NoJob):
            requests.append(parse_event(invoked(message), SETTINGS))

    assert len({request.event_key for request in requests}) == 2
    documents = [request.trigger.document or {} for request in requests if request.trigger is not None]
    assert sorted(document["Records"][0]["s3"]["object"]["key"] for document in documents) == [
        "day%3D1/a.csv",
        "day%3D2/a.csv",
    ]


@pytest.mark.parametrize("own", [{}, {"clientToken": "nightly-1"}])
def test_the_state_machine_names_its_run_by_the_execution(client: Callable[[str], Any], own: dict[str, str]) -> None:
    """Unless its input has a token of its own. The service computes the machine's first state."""
    states, name = client("stepfunctions"), f"events-{uuid.uuid4().hex[:12]}"
    role = client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=policy("states", "sts:AssumeRole"))
    first = {**definition("arn")["States"]["Key"], "End": True}
    del first["Next"]
    machine = states.create_state_machine(
        name=name,
        definition=json.dumps({"StartAt": "Key", "States": {"Key": first}}),
        roleArn=role["Role"]["Arn"],
    )["stateMachineArn"]
    given = json.dumps({"entryPoint": "s3://scripts/job.py", **own})
    execution = states.start_execution(stateMachineArn=machine, name="of-today", input=given)["executionArn"]
    assert until(lambda: states.describe_execution(executionArn=execution)["status"] == "SUCCEEDED")
    output = json.loads(states.describe_execution(executionArn=execution)["output"])
    request = parse_event(output["event"], SETTINGS)
    assert (request.client_token, output["tries"]) == (own.get("clientToken", "of-today"), 0)
