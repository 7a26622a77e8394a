"""On moto: alarms and sweeper of a stack, all correct and each thing wrong once.

moto's CloudFormation makes no alarms: botocore's stub answers for the stack, and checks the form of the answers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from safewriter.objects import Location
from soal.doctor import rights as needs
from soal.doctor.deployed import DeployedFunction
from soal.doctor.rights import requests_of
from soal.doctor.stack import Stack, examine_alarms, examine_sweeper, stack_of
from tests.support.cloud import ACCOUNT
from tests.unit.soal.doctor.findings import STACK, TOPIC, checked, told

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from soal.doctor.finding import Finding

pytestmark = pytest.mark.slow

SWEEPER = f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:sweeper"


@pytest.fixture(autouse=True)
def amazon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("AWS_ENDPOINT_URL")  # moto answers at Amazon's own addresses only
    with mock_aws():
        yield


def make_alarm(name: str, *, topic: str = TOPIC, enabled: bool = True) -> None:
    boto3.client("cloudwatch").put_metric_alarm(
        AlarmName=name,
        AlarmDescription=f"docs/guides/runbook.md: {name}",
        ActionsEnabled=enabled,
        AlarmActions=[topic],
        ComparisonOperator="GreaterThanThreshold",
        EvaluationPeriods=1,
        MetricName="Errors",
        Namespace="AWS/Lambda",
        Period=60,
        Statistic="Sum",
        Threshold=1,
    )


def test_alarms_that_are_well_one_that_rings_and_each_wrong_one() -> None:
    """The stack's alarms are examined by name; another stack's are ignored."""
    client = boto3.client("cloudwatch")
    make_alarm("Errors")
    make_alarm("Of another", topic="arn:aws:sns:us-east-1:1:other")
    assert told(examine_alarms(client, STACK)) == [("alarms", "fail")]
    make_alarm("Swept")
    assert told(examine_alarms(client, STACK)) == [("alarms", "ok")]
    client.set_alarm_state(AlarmName="Swept", StateValue="ALARM", StateReason="tried")
    assert told(examine_alarms(client, STACK)) == [("alarms", "ok"), ("alarm", "warn")]
    client.set_alarm_state(AlarmName="Swept", StateValue="OK", StateReason="tried")
    make_alarm("Swept", topic="arn:aws:sns:us-east-1:1:other")
    (deaf,) = checked(examine_alarms(client, STACK))
    assert (deaf.status, deaf.detail) == ("fail", f"Swept do not notify {TOPIC}")
    make_alarm("Swept", enabled=False)
    (silent,) = checked(examine_alarms(client, STACK))
    assert (silent.status, silent.remedy) == ("warn", "aws cloudwatch enable-alarm-actions --alarm-names Swept")


def test_more_alarms_than_one_request_names_are_all_looked_at() -> None:
    """All alarms are examined: CloudWatch takes 100 names per request, and returns 50 alarms by default."""
    names = tuple(f"a{number:03}" for number in range(120))
    for name in names:
        make_alarm(name)
    (found,) = checked(examine_alarms(boto3.client("cloudwatch"), Stack("Soal", STACK.outputs, names)))
    assert found.detail == f"120 alarms notify {TOPIC}"


def test_a_stack_whose_alarms_are_all_gone_is_found() -> None:
    """A stack without any alarm is a failure."""
    assert told(examine_alarms(boto3.client("cloudwatch"), Stack("Soal", STACK.outputs, ()))) == [("alarms", "fail")]


def make_function(name: str, **more: Any) -> Any:
    role = boto3.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    lambda_ = boto3.client("lambda")
    image = {"ImageUri": f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/soal:one"}
    lambda_.create_function(FunctionName=name, Role=role, PackageType="Image", Code=image, **more)
    return lambda_


@pytest.fixture
def _sweeper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOTO_LAMBDA_STUB_ECR", "TRUE")
    make_function("sweeper")
    events = boto3.client("events")
    events.put_rule(Name="sweep", ScheduleExpression="rate(15 minutes)")
    events.put_targets(Rule="sweep", Targets=[{"Id": "1", "Arn": SWEEPER}])


def look_at_sweeper(client: Callable[[str], Any] = boto3.client) -> list[tuple[str, str]]:  # type: ignore[assignment]
    return told(examine_sweeper(client, STACK))


@pytest.mark.usefixtures("_sweeper")
def test_the_sweeper_and_what_starts_it() -> None:
    """The sweeper needs an enabled rule with a schedule, and with the sweeper as its target."""
    events = boto3.client("events")
    assert look_at_sweeper() == [("sweeper", "ok"), ("sweeper's rule", "ok")]
    events.disable_rule(Name="sweep")
    found = checked(examine_sweeper(boto3.client, STACK))  # type: ignore[arg-type]
    assert (found[-1].status, found[-1].remedy) == ("fail", "aws events enable-rule --name sweep")
    events.enable_rule(Name="sweep")
    events.put_targets(Rule="sweep", Targets=[{"Id": "1", "Arn": f"{SWEEPER}-other"}])
    assert look_at_sweeper() == [("sweeper", "ok"), ("sweeper's rule", "fail")]
    events.put_rule(Name="pattern", EventPattern=json.dumps({"source": ["x"]}))
    events.put_targets(Rule="pattern", Targets=[{"Id": "1", "Arn": SWEEPER}])
    assert look_at_sweeper() == [("sweeper", "ok"), ("sweeper's rule", "fail")]


def test_a_sweeper_that_is_gone() -> None:
    """Ends the look at it."""
    assert look_at_sweeper() == [("sweeper", "fail")]


@pytest.mark.usefixtures("_sweeper")
def test_a_sweeper_whose_update_has_failed() -> None:
    """A failed update is reported with Lambda's reason."""
    lambda_ = boto3.client("lambda")
    with Stubber(lambda_) as stubber:
        failed = {
            "FunctionArn": SWEEPER,
            "State": "Active",
            "LastUpdateStatus": "Failed",
            "LastUpdateStatusReason": "ImageDeleted",
        }
        stubber.add_response("get_function_configuration", failed)
        client = {"lambda": lambda_, "events": boto3.client("events")}.__getitem__
        found = checked(examine_sweeper(client, STACK))[0]
    assert (found.status, "ImageDeleted" in found.detail) == ("fail", True)


def find(client: Any = None) -> tuple[list[Finding], Stack | None]:
    function = DeployedFunction(
        "job",
        lambda service: client if service == "cloudformation" else boto3.client(service),  # type: ignore[call-overload]
    )
    function.configuration = boto3.client("lambda").get_function_configuration(FunctionName="job")
    found: list[Finding] = []

    def collect(looking: Generator[Finding, None, Stack | None]) -> Generator[Finding, None, None]:
        stacks.append((yield from looking))

    stacks: list[Stack | None] = []
    found = checked(collect(stack_of(function)))
    return found, stacks[0]


def test_a_stack_is_found_by_the_function_s_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pages of the stack's outputs and alarms are read; a stack without our outputs is somebody else's."""
    monkeypatch.setenv("MOTO_LAMBDA_STUB_ECR", "TRUE")
    make_function("job", Tags={"aws:cloudformation:stack-name": "Soal"})
    client = boto3.client("cloudformation")
    outputs = [{"OutputKey": key, "OutputValue": value} for key, value in STACK.outputs.items()]

    def resource(kind: str, name: str) -> dict[str, Any]:
        return {
            "LogicalResourceId": name,
            "PhysicalResourceId": name,
            "ResourceType": kind,
            "LastUpdatedTimestamp": 0,
            "ResourceStatus": "CREATE_COMPLETE",
        }

    alarm = "AWS::CloudWatch::Alarm"
    first = [resource("AWS::S3::Bucket", "bucket"), resource(alarm, "Errors")]
    with Stubber(client) as stubber:
        for given in (outputs, []):
            stack = {"StackName": "Soal", "CreationTime": 0, "StackStatus": "CREATE_COMPLETE", "Outputs": given}
            stubber.add_response("describe_stacks", {"Stacks": [stack]}, {"StackName": "Soal"})
            stubber.add_response("list_stack_resources", {"StackResourceSummaries": first, "NextToken": "2"})
            stubber.add_response("list_stack_resources", {"StackResourceSummaries": [resource(alarm, "Swept")]})
        (good,), stack_found = find(client)
        assert (good.status, stack_found) == ("ok", STACK)
        (other,), none = find(client)
        assert (other.status, none) == ("warn", None)
        stubber.add_client_error("describe_stacks", "AccessDenied")
        (denied,), none = find(client)
        assert (denied.status, "AccessDenied" in denied.detail, none) == ("warn", True, None)


def test_a_function_without_a_stack_is_told_what_was_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a stack the finding says what was not examined, and how to check by hand."""
    monkeypatch.setenv("MOTO_LAMBDA_STUB_ECR", "TRUE")
    make_function("job")
    (found,), stack = find()
    assert (found.status, stack) == ("warn", None)
    assert "alarms, topic and sweeper were not examined" in found.detail
    assert "aws cloudwatch describe-alarms" in found.remedy


def test_the_lake_of_the_stack_may_hold_any_table() -> None:
    """A made-up table represents all tables of the lake."""
    (request, *_) = requests_of(needs.SWEEPER, [("data", Location("lake", "*"))])
    assert request.resource == "arn:aws:s3:::lake/soal-doctor/_delta_log/soal-doctor"
