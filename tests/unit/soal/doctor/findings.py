"""The doctor's findings for a stack, each with a remedy whose commands the AWS CLI accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from soal.doctor.stack import Stack
from tests.support.aws_command import commands, complaint
from tests.support.cloud import ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from soal.doctor.finding import Finding

__all__ = ["STACK", "TOPIC", "checked", "told"]

TOPIC = f"arn:aws:sns:us-east-1:{ACCOUNT}:alarms"
STACK = Stack("Soal", {"SweeperName": "sweeper", "AlarmTopicArn": TOPIC}, ("Errors", "Swept"))


def checked(findings: Iterable[Finding]) -> list[Finding]:
    found = list(findings)
    assert all(finding.remedy for finding in found if finding.status != "ok"), found
    wrong = [(one, complaint(one)) for finding in found for one in commands(finding.remedy) if complaint(one)]
    assert not wrong, wrong
    return found


def told(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    return [(finding.name, finding.status) for finding in checked(findings)]
