"""The CloudFormation stack of a deployed function, and findings about its alarms, sweeper and topic.

CloudFormation's tag on the function names the stack. The checks: the alarms exist, notify the topic, and none is in
alarm; the sweeper's function exists and a rule invokes it; CloudWatch may publish to the topic, and the topic has a
confirmed subscription.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from soal.doctor.deployed import command
from soal.doctor.finding import Finding, finding

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from soal.doctor.deployed import DeployedFunction

_TAG: Final = "aws:cloudformation:stack-name"
_ALARM: Final = "AWS::CloudWatch::Alarm"
_OUTPUTS: Final = ("SweeperName", "AlarmTopicArn")
_ALARMS_NAME: Final = "alarms"
_NAMES_MAX: Final = 100
"""https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html"""
_WHY: Final = "writes of dead runs are not settled until their next attempt"
_SERVICE: Final = "cloudwatch.amazonaws.com"
# CloudWatch cannot publish to a topic under the AWS managed key, since the key's policy cannot be changed.
# https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
_MANAGED_KEY: Final = "alias/aws/sns"
_TOPIC_NAME: Final = "alarm topic"


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack of this repository's CDK app: its outputs, and the names of its alarms."""

    name: str
    outputs: Mapping[str, str]
    alarms: tuple[str, ...]

    @property
    def repair(self) -> str:
        """How to restore resources that were changed or deleted by hand."""
        drift = command("cloudformation", "detect-stack-drift", stack_name=self.name)
        return f"{drift}; then undo manual changes by hand, since a deployment restores only resources that it changes"


def stack_of(function: DeployedFunction) -> Generator[Finding, None, Stack | None]:
    """Find the stack. If it is missing or unreadable, a finding says so and how to check by hand."""
    try:
        tags = function.client("lambda").list_tags(Resource=function.arn)["Tags"]
        stack = None if _TAG not in tags else _read(function, tags[_TAG])
        detail = f"{function.plain_name} belongs to no stack of CloudFormation"
    except (BotoCoreError, ClientError) as error:
        stack, detail = None, f"could not be read: {error}"
    if stack is not None and stack.outputs.keys() >= set(_OUTPUTS):
        yield Finding("stack", "ok", stack.name)
        return stack
    if stack is not None:
        detail = f"{stack.name} has no output {' or '.join(_OUTPUTS)}"
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
    resources = [resource for page in pages for resource in page["StackResourceSummaries"]]
    return Stack(
        name,
        {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", ())},
        tuple(resource["PhysicalResourceId"] for resource in resources if resource["ResourceType"] == _ALARM),
    )


def examine_alarms(cloudwatch: Any, stack: Stack) -> Iterator[Finding]:  # noqa: ANN401 - a boto3 client
    """Examine the stack's alarms."""
    topic = stack.outputs["AlarmTopicArn"]
    alarms = [
        alarm
        for first in range(0, len(stack.alarms), _NAMES_MAX)
        for alarm in cloudwatch.describe_alarms(
            AlarmNames=list(stack.alarms[first : first + _NAMES_MAX]), MaxRecords=_NAMES_MAX
        )["MetricAlarms"]
    ]
    missing = sorted(set(stack.alarms) - {alarm["AlarmName"] for alarm in alarms})
    if missing or not stack.alarms:
        detail = f"{', '.join(missing) or 'all'} of the stack {stack.name} do not exist"
        yield Finding(_ALARMS_NAME, "fail", detail, stack.repair)
    deaf = [alarm["AlarmName"] for alarm in alarms if topic not in alarm["AlarmActions"]]
    if deaf:
        yield Finding(_ALARMS_NAME, "fail", f"{', '.join(deaf)} do not notify {topic}", stack.repair)
    silent = [alarm["AlarmName"] for alarm in alarms if not alarm["ActionsEnabled"]]
    if silent:
        remedy = " ".join((command("cloudwatch", "enable-alarm-actions"), "--alarm-names", *silent))
        yield Finding(_ALARMS_NAME, "warn", f"{', '.join(silent)} notify nobody: their actions are disabled", remedy)
    if not (missing or deaf or silent) and alarms:
        yield Finding(_ALARMS_NAME, "ok", f"{len(alarms)} alarms notify {topic}")
    for alarm in alarms:
        if alarm["StateValue"] == "ALARM":
            yield _ringing(alarm)


def _ringing(alarm: Any) -> Finding:  # noqa: ANN401 - as the service describes it
    detail = f"{alarm['AlarmName']} rings: {alarm.get('AlarmDescription') or alarm.get('StateReason', '')}"
    show = command("cloudwatch", "describe-alarm-history", alarm_name=alarm["AlarmName"])
    return Finding("alarm", "warn", detail, f"docs/guides/runbook.md has a section for it; since when: {show}")


def examine_sweeper(client: Callable[[str], Any], stack: Stack) -> Generator[Finding, None, Mapping[str, Any] | None]:
    """Examine the sweeper's function and its rule; return the function's configuration, or None if it is missing."""
    name = stack.outputs["SweeperName"]
    try:
        configuration = client("lambda").get_function_configuration(FunctionName=name)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        yield Finding("sweeper", "fail", f"{name} does not exist: {_WHY}", stack.repair)
        return None
    state, update = (configuration.get(key) or "Active" for key in ("State", "LastUpdateStatus"))
    is_well = state in ("Active", "Inactive") and update in ("Active", "Successful")
    reason = configuration.get("StateReason") or configuration.get("LastUpdateStatusReason") or update
    detail = f"{name}, {state}" + ("" if is_well else f": {reason}")
    yield finding("sweeper", detail, command("lambda", "get-function", function_name=name), is_well=is_well)
    yield from _rule(client("events"), configuration["FunctionArn"], stack)
    return dict(configuration)


def _rule(events: Any, arn: str, stack: Stack) -> Iterator[Finding]:  # noqa: ANN401 - a boto3 client
    names = events.list_rule_names_by_target(TargetArn=arn)["RuleNames"]
    rules = [rule for rule in (events.describe_rule(Name=name) for name in names) if rule.get("ScheduleExpression")]
    enabled = [rule for rule in rules if rule["State"].startswith("ENABLED")]
    if enabled:
        schedules = ", ".join(f"{rule['Name']}, {rule['ScheduleExpression']}" for rule in enabled)
        yield Finding("sweeper's rule", "ok", schedules)
    elif rules:
        remedy = command("events", "enable-rule", name=rules[0]["Name"])
        yield Finding("sweeper's rule", "fail", f"{rules[0]['Name']} is disabled: {_WHY}", remedy)
    else:
        detail = f"no rule with a schedule has {arn} as its target: {_WHY}"
        yield Finding("sweeper's rule", "fail", detail, stack.repair)


def examine_topic(sns: Any, stack: Stack) -> Iterator[Finding]:  # noqa: ANN401 - a boto3 client
    """Examine the topic of the stack's alarms."""
    arn = stack.outputs["AlarmTopicArn"]
    try:
        attributes = sns.get_topic_attributes(TopicArn=arn)["Attributes"]
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("NotFound", "NotFoundException"):
            raise
        yield Finding(_TOPIC_NAME, "fail", f"{arn} does not exist: alarms reach nobody", stack.repair)
        return
    policy = json.loads(attributes.get("Policy", "{}"))
    if not _lets_publish(policy, arn):
        detail = f"{arn}: its policy does not let {_SERVICE} publish, so alarms reach nobody"
        yield Finding(_TOPIC_NAME, "fail", detail, _let_publish(policy, arn))
    elif str(attributes.get("KmsMasterKeyId", "")).endswith(_MANAGED_KEY):
        remedy = command("sns", "set-topic-attributes", topic_arn=arn, attribute_name="KmsMasterKeyId")
        detail = f"{arn} is encrypted by {_MANAGED_KEY}, with which CloudWatch cannot publish"
        remedy = f"{remedy} --attribute-value KEY_ID; its key policy must let {_SERVICE} use it"
        yield Finding(_TOPIC_NAME, "fail", detail, remedy)
    else:
        yield Finding(_TOPIC_NAME, "ok", f"{arn}; CloudWatch may publish")
    yield _subscriptions(sns, arn)


def _subscriptions(sns: Any, arn: str) -> Finding:  # noqa: ANN401 - a boto3 client
    pages = sns.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=arn)
    subscriptions = [entry for page in pages for entry in page["Subscriptions"]]
    confirmed = [entry for entry in subscriptions if entry["SubscriptionArn"].startswith("arn:")]
    if confirmed:
        kinds = sorted({entry["Protocol"] for entry in confirmed})
        return Finding("subscriptions", "ok", f"{len(confirmed)} confirmed ({', '.join(kinds)})")
    pending = [entry["Endpoint"] for entry in subscriptions if entry["SubscriptionArn"] == "PendingConfirmation"]
    if pending:
        detail = f"{', '.join(pending)} has not confirmed, so alarms reach nobody"
        return Finding("subscriptions", "warn", detail, "open the link in the message that SNS has sent there")
    remedy = command("sns", "subscribe", topic_arn=arn, protocol="email", notification_endpoint="OPS@EXAMPLE.ORG")
    return Finding("subscriptions", "warn", "nobody has subscribed, so alarms reach nobody", remedy)


def _let_publish(policy: Mapping[str, Any], arn: str) -> str:
    """Return the command that adds a statement to the policy. SNS only replaces whole policies."""
    account = arn.split(":")[4]
    statement = {
        "Sid": "AlarmsPublish",
        "Effect": "Allow",
        "Principal": {"Service": _SERVICE},
        "Action": "sns:Publish",
        "Resource": arn,
        "Condition": {"StringEquals": {"aws:SourceAccount": account}},
    }
    document = {"Version": "2012-10-17", **policy, "Statement": [*_items(policy.get("Statement", [])), statement]}
    return command(
        "sns",
        "set-topic-attributes",
        topic_arn=arn,
        attribute_name="Policy",
        attribute_value=json.dumps(document),
    )


def _lets_publish(policy: Mapping[str, Any], arn: str) -> bool:
    """Return whether CloudWatch can publish alarms of the topic's account. An Allow with an unknown condition does not
    count; nor does a Deny with any condition, which is most likely about TLS or other accounts.
    """
    about = [statement for statement in _items(policy.get("Statement", [])) if _is_about_alarms(statement, arn)]
    denied = any(statement["Effect"] == "Deny" and not statement.get("Condition") for statement in about)
    return not denied and any(statement["Effect"] == "Allow" and _is_fulfilled(statement, arn) for statement in about)


def _is_about_alarms(statement: Mapping[str, Any], arn: str) -> bool:
    principal = statement.get("Principal", {})
    names = ["*"] if principal == "*" else [*_items(principal.get("Service", [])), *_items(principal.get("AWS", []))]
    return (
        bool({_SERVICE, "*"} & set(names))
        and any(fnmatchcase("sns:publish", str(action).lower()) for action in _items(statement.get("Action", [])))
        and any(fnmatchcase(arn, str(resource)) for resource in _items(statement.get("Resource", [])))
    )


def _is_fulfilled(statement: Mapping[str, Any], arn: str) -> bool:
    _, partition, _, region, account, _ = arn.split(":")
    alarm = f"arn:{partition}:cloudwatch:{region}:{account}:alarm:any"
    facts = {"aws:sourceaccount": account, "aws:sourceowner": account, "aws:sourcearn": alarm}
    facts["aws:securetransport"] = "true"
    return all(
        key.lower() in facts
        and any(_is_like(facts[key.lower()], str(value)) for value in _items(values))
        and not operator.startswith(("StringNot", "ArnNot", "Null"))
        for operator, keys in statement.get("Condition", {}).items()
        for key, values in keys.items()
    )


def _is_like(value: str, pattern: str) -> bool:
    # A pattern that names an alarm is taken for one of the stack's alarms, which notify the topic.
    name_free = pattern.partition(":alarm:")[0] + ":alarm:*" if ":alarm:" in pattern else pattern
    return fnmatchcase(value.lower(), name_free.lower())


def _items(value: Any) -> list[Any]:  # noqa: ANN401 - of a policy document
    return list(value) if isinstance(value, list) else [value]
