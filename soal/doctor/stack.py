"""The CloudFormation stack that a function was deployed with, by the tag that CloudFormation puts on the function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from soal.doctor.deployed import command
from soal.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from soal.doctor.deployed import DeployedFunction

__all__ = ["Stack", "stack_of"]

_TAG: Final = "aws:cloudformation:stack-name"
_ALARM: Final = "AWS::CloudWatch::Alarm"
_OUTPUTS: Final = ("SweeperName", "AlarmTopicArn")


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack of this repository's CDK app: its outputs, and the names of its alarms."""

    name: str
    outputs: Mapping[str, str]
    alarms: tuple[str, ...]

    @property
    def repair(self) -> str:
        """How to restore resources that somebody has changed or deleted by hand."""
        drift = command("cloudformation", "detect-stack-drift", stack_name=self.name)
        return f"{drift}; then undo manual changes by hand, since a deployment restores only resources that it changes"


def stack_of(function: DeployedFunction) -> Generator[Finding, None, Stack | None]:
    """Find the stack; a finding says that there is none or the caller may not read it, and how to check by hand."""
    try:
        tags = function.client("lambda").list_tags(Resource=function.arn)["Tags"]
        found = None if _TAG not in tags else _read(function, tags[_TAG])
        detail = f"{function.plain_name} belongs to no stack of CloudFormation"
    except (BotoCoreError, ClientError) as error:
        found, detail = None, f"could not be read: {error}"
    if found is not None and found.outputs.keys() >= set(_OUTPUTS):
        yield Finding("stack", "ok", found.name)
        return found
    if found is not None:
        detail = f"{found.name} has no output {' or '.join(_OUTPUTS)}"
    states = "MetricAlarms[].[AlarmName,StateValue,ActionsEnabled]"
    remedy = (
        f"{command('cloudwatch', 'describe-alarms', query=states)}; "
        f"{command('events', 'list-rule-names-by-target', target_arn='SWEEPER_ARN')}; "
        f"{command('sns', 'list-subscriptions')}; writes that wait for a sweeper: soal recover --dry-run"
    )
    yield Finding("stack", "warn", f"{detail}; so alarms, topic and sweeper were not examined", remedy)
    return None


def _read(function: DeployedFunction, name: str) -> Stack:
    client = function.client("cloudformation")
    (stack,) = client.describe_stacks(StackName=name)["Stacks"]
    pages = client.get_paginator("list_stack_resources").paginate(StackName=name)
    made = [each for page in pages for each in page["StackResourceSummaries"]]
    return Stack(
        name,
        {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", ())},
        tuple(each["PhysicalResourceId"] for each in made if each["ResourceType"] == _ALARM),
    )
