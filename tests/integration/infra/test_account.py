"""The stack in an account that nobody here wrote: made, described by its services, removed. No function runs.

`scripts/demo --account` runs them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError, SSLError
from botocore.httpsession import where

from infra.config import Config
from scripts.account.client import client_of
from scripts.account.deployment import STACK, outputs
from scripts.account.server import ACCOUNT
from tests.support.account import IMAGE, KEY, MORE, OTHERWISE, SECRET

if TYPE_CHECKING:
    from collections.abc import Callable

    from scripts.account.deployment import Deployment
    from scripts.account.server import Account

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
ONCE_A_SECOND = {"Delay": 1, "MaxAttempts": 120}
UNTRIED = {
    "capacity_provider",  # Managed Instances: it has none
    "durable",  # Lambda's description has no word of it
    "gradual_deployment",  # AWS::CodeDeploy is unknown
    "image_variant",  # of an image that the CDK builds
    # AWS::Lambda::MicrovmImage is unknown; test_microvm.py asks the API
    *("microvm_timeout_s", "microvm_memory_mb", "microvm_base_version"),
    *("network", "vpc_id", "subnet_ids", "availability_zones", "security_group_ids"),  # nor of a network
    "reserved_concurrency",  # which an update does not set
    "stack_name",
}


def resources(cloudformation: Any) -> set[tuple[str, str]]:
    """Return all resources of the stack, by their logical and their physical ids."""
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=STACK)
    found = (one for page in pages for one in page["StackResourceSummaries"])
    return {(one["LogicalResourceId"], one["PhysicalResourceId"]) for one in found}


def test_the_key_of_the_server_is_on_no_disk(account: Account, client: Callable[[str], Any]) -> None:
    """Once the server has it; clients need the certificate only. Who does not trust it gets no answer."""
    aws = {**account.aws, "AWS_CA_BUNDLE": where()}

    assert client("sts").get_caller_identity()["Account"] == ACCOUNT
    assert not account.certificate.key.exists()
    with pytest.raises(SSLError):
        client_of(aws, "sts").get_caller_identity()


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


def test_outputs_name_what_was_made(made: dict[str, str], client: Callable[[str], Any]) -> None:
    """Buckets, logs that are kept for the days of the context, and a sweeper with a role of its own."""
    functions = {one["FunctionName"]: one for one in client("lambda").list_functions()["Functions"]}
    sweeper = functions[made["SweeperName"]]
    groups = {one["logGroupName"]: one["retentionInDays"] for one in client("logs").describe_log_groups()["logGroups"]}

    assert sweeper["Environment"]["Variables"]["SW_CHECKPOINT_BUCKET"] == made["CheckpointBucket"]
    assert len({one["Role"] for one in functions.values()}) == len(functions) == 3
    assert groups[made["LogGroup"]] == 30
    assert set(groups.values()) == {30}
    queue = client("sqs").get_queue_attributes(QueueUrl=made["FailureQueueUrl"], AttributeNames=["All"])
    assert queue["Attributes"]["MessageRetentionPeriod"] == "1209600"


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


def test_a_deployment_that_fails_leaves_all_as_it_was(
    account: Account, made: dict[str, str], client: Callable[[str], Any]
) -> None:
    """CloudFormation has changed a function and made a queue before an alias of the function turns out to exist."""
    cloudformation, function = client("cloudformation"), {"FunctionName": made["FunctionName"]}
    template = json.loads(json.dumps(cloudformation.get_template(StackName=STACK)["TemplateBody"]))
    functions = (key for key, one in template["Resources"].items() if one["Type"] == "AWS::Lambda::Function")
    (name,) = (key for key in functions if key.startswith("Runtime"))
    template["Resources"][name]["Properties"]["Timeout"] = 301
    alias = {"FunctionName": {"Ref": name}, "Name": "live", "FunctionVersion": "1"}
    template["Resources"]["New"] = {"Type": "AWS::SQS::Queue"}
    template["Resources"]["Refused"] = {"Type": "AWS::Lambda::Alias", "Properties": alias, "DependsOn": "New"}
    client("s3").put_object(Bucket=made["ScriptBucket"], Key="template.json", Body=json.dumps(template))
    before = resources(cloudformation)

    cloudformation.update_stack(
        StackName=STACK,
        TemplateURL=f"{account.endpoint}/{made['ScriptBucket']}/template.json",
        Capabilities=["CAPABILITY_IAM"],
        Parameters=[{"ParameterKey": "BootstrapVersion", "UsePreviousValue": True}],
    )
    cloudformation.get_waiter("stack_rollback_complete").wait(StackName=STACK, WaiterConfig=ONCE_A_SECOND)

    events = cloudformation.describe_stack_events(StackName=STACK)["StackEvents"]
    undone = {one["LogicalResourceId"] for one in events if one["ResourceStatus"] == "UPDATE_COMPLETE"}
    failed = [one for one in events if one["ResourceStatus"] in ("CREATE_FAILED", "UPDATE_FAILED")]
    assert [(one["LogicalResourceId"], "already exists" in one["ResourceStatusReason"]) for one in failed] == [
        ("Refused", True)
    ]
    assert name in undone
    assert outputs(cloudformation) == made
    assert resources(cloudformation) == before
    described = client("lambda").get_function_configuration(**function)
    assert (described["Timeout"], client("lambda").get_alias(**function, Name="live")["FunctionVersion"]) == (300, "1")


def test_schedules_are_read_back(made: dict[str, str], client: Callable[[str], Any]) -> None:
    """Scheduler has them as the context asks for."""
    (listed,) = client("scheduler").list_schedules()["Schedules"]
    schedule = client("scheduler").get_schedule(Name=listed["Name"])
    assert schedule["ScheduleExpression"] == "cron(0 * * * ? *)"
    assert json.loads(schedule["Target"]["Input"])["clientToken"] == "hourly-<aws.scheduler.scheduled-time>"
    assert schedule["Target"]["Arn"] == made["InvokeArn"]


def test_the_other_context_keys_are_read_back(
    deployment: Deployment, made: dict[str, str], client: Callable[[str], Any]
) -> None:
    """In place, after the deployment that failed."""
    deployment.deploy(MORE)

    lambda_, function = client("lambda"), {"FunctionName": made["FunctionName"]}
    found = lambda_.get_function_configuration(FunctionName=made["InvokeArn"])
    assert (found["Architectures"], found["EphemeralStorage"]) == (["arm64"], {"Size": 4096})
    variables = found["Environment"]["Variables"]
    texts = {
        "POWERTOOLS_LOG_LEVEL": "DEBUG",
        "SOAL_CONF_ALLOW": "spark.sql.ansi.enabled",
        "SOAL_EVENT_LOGS": "on",
        "SOAL_JIT": "full",
        "SW_AUDIT_LOG": "false",
        "SW_WARN_BEFORE_MS": "20000",
        "TABLE": "s3a://my-lake/tables/t",
    }
    assert texts.items() <= variables.items()
    for variable, key in (("SOAL_CONF", "conf"), ("SOAL_TURNS", "turns"), ("SOAL_SECRETS", "secrets")):
        assert json.loads(variables[variable]) == json.loads(MORE[key])
    config = lambda_.get_function_event_invoke_config(**function, Qualifier="live")
    assert (config["MaximumRetryAttempts"], config["MaximumEventAgeInSeconds"]) == (1, 3600)
    (mapping,) = lambda_.list_event_source_mappings()["EventSourceMappings"]
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 3}
    queue = client("sqs").get_queue_attributes(QueueUrl=made["JobQueueUrl"], AttributeNames=["RedrivePolicy"])
    assert json.loads(queue["Attributes"]["RedrivePolicy"])["maxReceiveCount"] == 4
    rules = client("events").list_rules()["Rules"]
    (pattern,) = (json.loads(rule["EventPattern"]) for rule in rules if "EventPattern" in rule)
    assert pattern["detail"] == {"bucket": {"name": ["raw"]}, "object": {"key": [{"prefix": "in/"}]}}
    assert "rate(30 minutes)" in {rule.get("ScheduleExpression") for rule in rules}
    groups = client("logs").describe_log_groups()["logGroups"]
    assert {group["retentionInDays"] for group in groups} == {14}
    alarms = client("cloudwatch").describe_alarms()["MetricAlarms"]
    thresholds = {alarm["MetricName"]: alarm["Threshold"] for alarm in alarms}
    assert thresholds["OldestOpenMs"] == 90 * 60_000
    assert thresholds["ApproximateAgeOfOldestMessage"] == 400 * 60
    role = found["Role"].rpartition("/")[2]
    (policy, *_) = client("iam").list_role_policies(RoleName=role)["PolicyNames"]
    text = json.dumps(client("iam").get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"])
    assert all(resource in text for resource in (SECRET, KEY, "arn:aws:s3:::raw/archive/*", "arn:aws:s3:::raw/in/*"))


def test_the_state_machine_is_read_back(made: dict[str, str], client: Callable[[str], Any]) -> None:
    """Step Functions has it, with a role of its own."""
    listed = client("stepfunctions").list_state_machines()["stateMachines"]
    stack = {physical for _, physical in resources(client("cloudformation"))}
    (arn,) = {one["stateMachineArn"] for one in listed} & stack  # tests of events make machines too
    machine = client("stepfunctions").describe_state_machine(stateMachineArn=arn)
    assert json.loads(machine["definition"])["States"]["Run"]["Parameters"]["FunctionName"] == made["InvokeArn"]
    (schedule,) = client("scheduler").list_schedules()["Schedules"]
    target = client("scheduler").get_schedule(Name=schedule["Name"])["Target"]
    assert machine["roleArn"] != target["RoleArn"]


def test_what_contradicts_those_is_read_back(
    deployment: Deployment, made: dict[str, str], client: Callable[[str], Any]
) -> None:
    """Without triggers and a redrive; the scripts are elsewhere."""
    deployment.deploy(OTHERWISE)

    found = client("lambda").get_function_configuration(FunctionName=made["InvokeArn"])["Environment"]["Variables"]
    assert (found["SOAL_ERRORS"], found["SOAL_REUSE"], found["SCRIPT_BUCKET"]) == ("return", "off", "my-scripts/spark")
    assert not client("lambda").list_event_source_mappings()["EventSourceMappings"]


def test_every_context_key_is_deployed_or_said_to_be_untried() -> None:
    """docs/reference/services.md says which this account cannot take."""
    assert Config.model_fields.keys() - {*MORE, *OTHERWISE} == UNTRIED


def test_the_end_leaves_what_holds_data_and_nothing_else(
    deployment: Deployment, made: dict[str, str], client: Callable[[str], Any]
) -> None:
    """Buckets and the table of locks stay; functions, queues and rules go."""
    deployment.destroy(OTHERWISE)

    with pytest.raises(ClientError):
        client("cloudformation").describe_stacks(StackName=STACK)
    assert client("lambda").list_functions()["Functions"] == []
    assert client("events").list_rules()["Rules"] == []
    assert not client("sqs").list_queues().get("QueueUrls")
    buckets = {one["Name"] for one in client("s3").list_buckets()["Buckets"]}
    assert {made["LakeBucket"], made["CheckpointBucket"], made["ScriptBucket"]} <= buckets
    assert client("dynamodb").list_tables()["TableNames"] == [made["LockTable"]]
