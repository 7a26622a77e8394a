"""The stack in an account that nobody here wrote: made, described by its services, removed. No function runs.

`scripts/demo --account` runs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from scripts.account.deployment import STACK
from tests.support.account import CONTEXT, IMAGE

if TYPE_CHECKING:
    from collections.abc import Callable

    from scripts.account.deployment import Deployment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_each_resource_is_made(made: dict[str, str], client: Callable[[str], Any]) -> None:
    """CloudFormation describes the stack and each part of it as complete."""
    cloudformation = client("cloudformation")
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=STACK)
    states = {one["ResourceStatus"] for page in pages for one in page["StackResourceSummaries"]}

    assert made
    assert states == {"CREATE_COMPLETE"}


def test_the_function_is_what_the_context_asks_for(made: dict[str, str], client: Callable[[str], Any]) -> None:
    """Read back from Lambda, behind the alias."""
    found = client("lambda").get_function(FunctionName=made["InvokeArn"])
    configuration = found["Configuration"]

    assert found["Code"]["ImageUri"] == IMAGE
    assert (configuration["MemorySize"], configuration["Timeout"], configuration["Version"]) == (2048, 300, "1")
    assert configuration["TracingConfig"] == {"Mode": "Active"}
    assert configuration["LoggingConfig"]["LogGroup"] == made["LogGroup"]
    variables = configuration["Environment"]["Variables"]
    assert variables["SW_CHECKPOINT_BUCKET"] == made["CheckpointBucket"]


def test_a_failed_event_goes_to_the_failure_queue(made: dict[str, str], client: Callable[[str], Any]) -> None:
    """Of the function, and of its alias."""
    sqs = client("sqs")
    queue = sqs.get_queue_attributes(QueueUrl=made["FailureQueueUrl"], AttributeNames=["QueueArn"])["Attributes"]
    configs = client("lambda").list_function_event_invoke_configs(FunctionName=made["FunctionName"])
    found = {
        one["FunctionArn"].rpartition(":")[2]: one["DestinationConfig"]["OnFailure"]["Destination"]
        for one in configs["FunctionEventInvokeConfigs"]
    }

    assert found == dict.fromkeys(("live", "$LATEST"), queue["QueueArn"])


def test_what_starts_jobs_leads_to_the_alias(made: dict[str, str], client: Callable[[str], Any]) -> None:
    """Rules and the queue of jobs: a rollback moves them all at once."""
    events = client("events")
    rules = {rule["ScheduleExpression"]: rule["Name"] for rule in events.list_rules()["Rules"]}
    (daily,) = events.list_targets_by_rule(Rule=rules["rate(1 day)"])["Targets"]
    (mapping,) = [
        one
        for one in client("lambda").list_event_source_mappings()["EventSourceMappings"]
        if one["EventSourceArn"] == made["JobQueueArn"]
    ]

    assert daily["Arn"] == mapping["FunctionArn"] == made["InvokeArn"]
    assert mapping["BatchSize"] == 1
    assert "rate(5 minutes)" in rules


def test_each_alarm_tells_the_topic(made: dict[str, str], client: Callable[[str], Any]) -> None:
    """And the address of the context is subscribed to it."""
    alarms = client("cloudwatch").describe_alarms()["MetricAlarms"]
    subscribed = client("sns").list_subscriptions_by_topic(TopicArn=made["AlarmTopicArn"])["Subscriptions"]

    assert len(alarms) >= 18
    assert all(alarm["AlarmActions"] == [made["AlarmTopicArn"]] for alarm in alarms)
    assert [one["Endpoint"] for one in subscribed] == ["you@example.org"]


def test_buckets_are_private_and_keep_versions(made: dict[str, str], client: Callable[[str], Any]) -> None:
    """Ministack makes neither their encryption nor their lifecycle, so it can say nothing of those."""
    s3 = client("s3")
    for name in (made["LakeBucket"], made["CheckpointBucket"], made["ScriptBucket"]):
        blocked = s3.get_public_access_block(Bucket=name)["PublicAccessBlockConfiguration"]
        assert all(blocked.values())
        assert s3.get_bucket_versioning(Bucket=name)["Status"] == "Enabled"


def test_the_table_of_locks_is_there(made: dict[str, str], client: Callable[[str], Any]) -> None:
    """DynamoDB describes it."""
    table = client("dynamodb").describe_table(TableName=made["LockTable"])["Table"]

    assert (table["TableStatus"], table["BillingModeSummary"]["BillingMode"]) == ("ACTIVE", "PAY_PER_REQUEST")


def test_the_end_leaves_what_holds_data_and_nothing_else(
    deployment: Deployment, made: dict[str, str], client: Callable[[str], Any]
) -> None:
    """Buckets and the table of locks stay; functions, queues and rules go."""
    deployment.destroy(CONTEXT)

    with pytest.raises(ClientError):
        client("cloudformation").describe_stacks(StackName=STACK)
    assert client("lambda").list_functions()["Functions"] == []
    assert client("events").list_rules()["Rules"] == []
    assert not client("sqs").list_queues().get("QueueUrls")
    buckets = {one["Name"] for one in client("s3").list_buckets()["Buckets"]}
    assert {made["LakeBucket"], made["CheckpointBucket"], made["ScriptBucket"]} <= buckets
    assert client("dynamodb").list_tables()["TableNames"] == [made["LockTable"]]
