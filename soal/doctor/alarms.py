"""Findings about a stack's alarms: they exist, they notify the topic, and none rings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from soal.doctor.deployed import command
from soal.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from soal.doctor.stack import Stack

__all__ = ["examine_alarms"]

_NAME: Final = "alarms"
_NAMES_MAX: Final = 100
"""https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html"""


def examine_alarms(cloudwatch: Any, stack: Stack) -> Iterator[Finding]:  # noqa: ANN401 - a boto3 client
    """Examine each alarm that the stack has made."""
    topic = stack.outputs["AlarmTopicArn"]
    found = [
        alarm
        for first in range(0, len(stack.alarms), _NAMES_MAX)
        for alarm in cloudwatch.describe_alarms(
            AlarmNames=list(stack.alarms[first : first + _NAMES_MAX]), MaxRecords=_NAMES_MAX
        )["MetricAlarms"]
    ]
    missing = sorted(set(stack.alarms) - {alarm["AlarmName"] for alarm in found})
    if missing or not stack.alarms:
        detail = f"{', '.join(missing) or 'all'} of the stack {stack.name} do not exist"
        yield Finding(_NAME, "fail", detail, stack.repair)
    deaf = [alarm["AlarmName"] for alarm in found if topic not in alarm["AlarmActions"]]
    if deaf:
        yield Finding(_NAME, "fail", f"{', '.join(deaf)} do not notify {topic}", stack.repair)
    silent = [alarm["AlarmName"] for alarm in found if not alarm["ActionsEnabled"]]
    if silent:
        remedy = " ".join((command("cloudwatch", "enable-alarm-actions"), "--alarm-names", *silent))
        yield Finding(_NAME, "warn", f"{', '.join(silent)} notify nobody: their actions are disabled", remedy)
    if not (missing or deaf or silent) and found:
        yield Finding(_NAME, "ok", f"{len(found)} alarms notify {topic}")
    for alarm in found:
        if alarm["StateValue"] == "ALARM":
            yield _ringing(alarm)


def _ringing(alarm: Any) -> Finding:  # noqa: ANN401 - as the service describes it
    detail = f"{alarm['AlarmName']} rings: {alarm.get('AlarmDescription') or alarm.get('StateReason', '')}"
    shown = command("cloudwatch", "describe-alarm-history", alarm_name=alarm["AlarmName"])
    return Finding("alarm", "warn", detail, f"docs/guides/runbook.md has a section for it; since when: {shown}")
