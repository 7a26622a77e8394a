"""Findings about the alarms' topic: it exists, CloudWatch may publish to it, somebody has subscribed."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from soal.doctor.deployed import command
from soal.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from soal.doctor.stack import Stack

__all__ = ["examine_topic"]

_SERVICE: Final = "cloudwatch.amazonaws.com"
# CloudWatch cannot publish to a topic under the key that AWS manages, since its policy cannot be changed.
# https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html
_MANAGED_KEY: Final = "alias/aws/sns"
_NAME: Final = "alarm topic"


def examine_topic(sns: Any, stack: Stack) -> Iterator[Finding]:  # noqa: ANN401 - a boto3 client
    """Examine the topic of the stack's alarms."""
    arn = stack.outputs["AlarmTopicArn"]
    try:
        attributes = sns.get_topic_attributes(TopicArn=arn)["Attributes"]
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("NotFound", "NotFoundException"):
            raise
        yield Finding(_NAME, "fail", f"{arn} does not exist: alarms reach nobody", stack.repair)
        return
    policy = json.loads(attributes.get("Policy", "{}"))
    if not _lets_publish(policy, arn):
        detail = f"{arn}: its policy does not let {_SERVICE} publish, so alarms reach nobody"
        yield Finding(_NAME, "fail", detail, _let_publish(policy, arn))
    elif str(attributes.get("KmsMasterKeyId", "")).endswith(_MANAGED_KEY):
        remedy = command("sns", "set-topic-attributes", topic_arn=arn, attribute_name="KmsMasterKeyId")
        detail = f"{arn} is encrypted by {_MANAGED_KEY}, with which CloudWatch cannot publish"
        remedy = f"{remedy} --attribute-value KEY_ID; its key policy must let {_SERVICE} use it"
        yield Finding(_NAME, "fail", detail, remedy)
    else:
        yield Finding(_NAME, "ok", f"{arn}; CloudWatch may publish")
    yield _subscriptions(sns, arn)


def _subscriptions(sns: Any, arn: str) -> Finding:  # noqa: ANN401 - a boto3 client
    pages = sns.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=arn)
    found = [each for page in pages for each in page["Subscriptions"]]
    confirmed = [each for each in found if each["SubscriptionArn"].startswith("arn:")]
    if confirmed:
        kinds = sorted({each["Protocol"] for each in confirmed})
        return Finding("subscriptions", "ok", f"{len(confirmed)} confirmed ({', '.join(kinds)})")
    pending = [each["Endpoint"] for each in found if each["SubscriptionArn"] == "PendingConfirmation"]
    if pending:
        detail = f"{', '.join(pending)} has not confirmed, so alarms reach nobody"
        return Finding("subscriptions", "warn", detail, "open the link in the message that SNS has sent there")
    remedy = command("sns", "subscribe", topic_arn=arn, protocol="email", notification_endpoint="OPS@EXAMPLE.ORG")
    return Finding("subscriptions", "warn", "nobody has subscribed, so alarms reach nobody", remedy)


def _let_publish(policy: Mapping[str, Any], arn: str) -> str:
    """Return the command that adds a statement: the service replaces the whole policy."""
    account = arn.split(":")[4]
    statement = {
        "Sid": "AlarmsPublish",
        "Effect": "Allow",
        "Principal": {"Service": _SERVICE},
        "Action": "sns:Publish",
        "Resource": arn,
        "Condition": {"StringEquals": {"aws:SourceAccount": account}},
    }
    wanted = {"Version": "2012-10-17", **policy, "Statement": [*_listed(policy.get("Statement", [])), statement]}
    return command(
        "sns",
        "set-topic-attributes",
        topic_arn=arn,
        attribute_name="Policy",
        attribute_value=json.dumps(wanted),
    )


def _lets_publish(policy: Mapping[str, Any], arn: str) -> bool:
    """Tell whether an alarm of the topic's account can be published. An unknown condition of a permission counts as not
    met; an unknown condition of a denial counts as one about TLS or another account.
    """
    about = [each for each in _listed(policy.get("Statement", [])) if _is_about_alarms(each, arn)]
    denied = any(each["Effect"] == "Deny" and not each.get("Condition") for each in about)
    return not denied and any(each["Effect"] == "Allow" and _is_fulfilled(each, arn) for each in about)


def _is_about_alarms(statement: Mapping[str, Any], arn: str) -> bool:
    principal = statement.get("Principal", {})
    named = ["*"] if principal == "*" else [*_listed(principal.get("Service", [])), *_listed(principal.get("AWS", []))]
    return (
        bool({_SERVICE, "*"} & set(named))
        and any(fnmatchcase("sns:publish", str(action).lower()) for action in _listed(statement.get("Action", [])))
        and any(fnmatchcase(arn, str(resource)) for resource in _listed(statement.get("Resource", [])))
    )


def _is_fulfilled(statement: Mapping[str, Any], arn: str) -> bool:
    _, partition, _, region, account, _ = arn.split(":")
    alarm = f"arn:{partition}:cloudwatch:{region}:{account}:alarm:any"
    known = {"aws:sourceaccount": account, "aws:sourceowner": account, "aws:sourcearn": alarm}
    known["aws:securetransport"] = "true"
    return all(
        key.lower() in known
        and any(_is_like(known[key.lower()], str(each)) for each in _listed(expected))
        and not operator.startswith(("StringNot", "ArnNot", "Null"))
        for operator, keys in statement.get("Condition", {}).items()
        for key, expected in keys.items()
    )


def _is_like(value: str, pattern: str) -> bool:
    # An ARN that names an alarm is one of the stack's: these notify the topic.
    name_free = pattern.partition(":alarm:")[0] + ":alarm:*" if ":alarm:" in pattern else pattern
    return fnmatchcase(value.lower(), name_free.lower())


def _listed(value: Any) -> list[Any]:  # noqa: ANN401 - of a policy document
    return list(value) if isinstance(value, list) else [value]
