"""A stack created by moto's CloudFormation, read through the services' own APIs."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from tests.support.iam import Access

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["UNKNOWN", "Deployed", "deploy"]

UNKNOWN = frozenset(
    {
        "AWS::CloudWatch::Alarm",
        "AWS::CloudWatch::Dashboard",
        "AWS::Lambda::Alias",
        "AWS::Lambda::EventInvokeConfig",
        "AWS::S3::BucketPolicy",
        "AWS::SNS::TopicPolicy",
        "AWS::SQS::QueuePolicy",
    }
)
"""The types that moto's CloudFormation does not create; the assertions on the template cover them."""
# A dashboard of alarms cannot be read without them.
_LEFT_OUT = frozenset({"AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard"})


@dataclass(frozen=True)
class Deployed:
    """The resources after the deployment."""

    status: str
    resources: Counter[str]
    outputs: Mapping[str, str]
    functions: Mapping[str, dict[str, Any]]
    access: Mapping[str, Access]
    buckets: frozenset[str]
    retention_days: Mapping[str, int]
    queues: Mapping[str, Mapping[str, str]]
    rules: Mapping[str, str]


def deploy(template: Mapping[str, Any]) -> Deployed:
    """Create the stack, read its resources, and delete it."""
    kept = {name: each for name, each in template["Resources"].items() if each["Type"] not in _LEFT_OUT}
    outputs = {name: each for name, each in template["Outputs"].items() if name != "DashboardName"}
    body = json.dumps({**template, "Resources": kept, "Outputs": outputs})
    with pytest.MonkeyPatch.context() as patch, mock_aws(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one for each unknown resource; the counts check it
        patch.delenv("AWS_ENDPOINT_URL", raising=False)  # moto answers at Amazon's own addresses only
        boto3.client("ssm").put_parameter(Name=_bootstrap(template), Value="30", Type="String")
        cloudformation = boto3.client("cloudformation")
        cloudformation.create_stack(StackName="Soal", TemplateBody=body, Capabilities=["CAPABILITY_IAM"])
        return _look(cloudformation)


def _bootstrap(template: Mapping[str, Any]) -> str:
    return str(template["Parameters"]["BootstrapVersion"]["Default"])


def _look(cloudformation: Any) -> Deployed:
    (stack,) = cloudformation.describe_stacks(StackName="Soal")["Stacks"]
    made = cloudformation.list_stack_resources(StackName="Soal")["StackResourceSummaries"]
    sqs, iam = boto3.client("sqs"), boto3.client("iam")
    return Deployed(
        status=stack["StackStatus"],
        resources=Counter(each["ResourceType"] for each in made if each["ResourceType"]),
        outputs={each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]},
        functions={each["FunctionName"]: dict(each) for each in boto3.client("lambda").list_functions()["Functions"]},
        access={role["Arn"]: _access(iam, role["RoleName"]) for role in iam.list_roles()["Roles"]},
        buckets=frozenset(bucket["Name"] for bucket in boto3.client("s3").list_buckets()["Buckets"]),
        retention_days={
            group["logGroupName"]: group["retentionInDays"]
            for group in boto3.client("logs").describe_log_groups()["logGroups"]
        },
        queues={
            url: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
            for url in sqs.list_queues()["QueueUrls"]
        },
        rules={rule["Name"]: rule["ScheduleExpression"] for rule in boto3.client("events").list_rules()["Rules"]},
    )


def _access(iam: Any, role: str) -> Access:
    names = iam.list_role_policies(RoleName=role)["PolicyNames"]
    return Access.of(iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"] for name in names)
