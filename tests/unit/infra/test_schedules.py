"""Schedules, checked against EventBridge's reference and against cfn-lint's own rule."""

from __future__ import annotations

import json

import pytest
from cfnlint.api import lint
from cfnlint.config import ManualArgs

from infra.places import check_schedule

# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-cron-expressions.html, its examples and its text, and
# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rate-expressions.html
GOOD = (
    "cron(0 10 * * ? *)",
    "cron(15 12 * * ? *)",
    "cron(0 18 ? * MON-FRI *)",
    "cron(0 8 1 * ? *)",
    "cron(0/15 * * * ? *)",
    "cron(0/10 * ? * MON-FRI *)",
    "cron(0/5 8-17 ? * MON-FRI *)",
    "cron(0/30 20-23 ? * MON-FRI *)",
    "cron(15 10 ? * 6L 2022-2023)",
    "cron(0 9 ? * 2#1 *)",
    "cron(0 0 1,15 JAN,MAR,DEC ? *)",
    "cron(0 0 3W * ? *)",
    "cron(0 0 L * ? *)",
    "cron(1/10 * * * ? *)",
    "cron(0 0 1-15 1-6 ? 1970-2199)",
    "rate(1 minute)",
    "rate(5 minutes)",
    "rate(1 hour)",
    "rate(2 hours)",
    "rate(1 day)",
    "rate(7 days)",
)
BAD = (
    "cron(x)",
    "cron()",
    "cron(0 10 * * *)",
    "cron(0 10 * * ? * *)",
    "cron(60 10 * * ? *)",
    "cron(0 24 * * ? *)",
    "cron(0 10 0 * ? *)",
    "cron(0 10 32 * ? *)",
    "cron(0 10 * 13 ? *)",
    "cron(0 10 * JANUARY ? *)",
    "cron(0 10 ? * 8 *)",
    "cron(0 10 ? * 0 *)",
    "cron(0 10 ? * MONDAY *)",
    "cron(0 10 ? * 3#6 *)",
    "cron(0 10 ? * 3#1,6#3 *)",
    "cron(0 10 * * ? 1969)",
    "cron(0 10 * * ? 2200)",
    "cron(0 10 * * * *)",
    "cron(0 10 1 * MON *)",
    "cron(0 10 ? * ? *)",
    "cron(0/0 10 * * ? *)",
    "cron(? 10 * * ? *)",
    "cron(*-5 10 * * ? *)",
    "cron(5-* 10 * * ? *)",
    "cron(L 10 * * ? *)",
    "cron(0 10 ? * L-3 *)",
    "cron(0 10 32W * ? *)",
    "cron(0  10 * * ? *)",
    "cron(0 10 * * ? *",
    "rate(1 days)",
    "rate(2 day)",
    "rate(0 minutes)",
    "rate(-1 days)",
    "rate(1.5 days)",
    "rate(30 seconds)",
    "rate(1 week)",
    "rate(5)",
    "rate()",
    "rate(1 day) ",
    "at(2026-01-01T00:00:00)",
    "daily",
    "",
    f"cron({'0,' * 200}0 10 * * ? *)",
)


@pytest.mark.slow
def test_cfn_lint_takes_what_the_reference_shows() -> None:
    """The table is right: the other implementation finds no mistake in it, and finds a deliberate one."""
    assert refusals_of_cfn_lint(GOOD) == []
    assert len(refusals_of_cfn_lint((*GOOD, "rate(1 days)"))) == 1


def refusals_of_cfn_lint(schedules: tuple[str, ...]) -> list[str]:
    rules = {
        f"Rule{number}": {"Type": "AWS::Events::Rule", "Properties": {"ScheduleExpression": schedule}}
        for number, schedule in enumerate(schedules)
    }
    return [str(each) for each in lint(json.dumps({"Resources": rules}), config=ManualArgs(regions=["us-east-1"]))]


@pytest.mark.parametrize("schedule", GOOD)
def test_what_the_reference_shows_is_taken(schedule: str) -> None:
    """The examples are from EventBridge's own pages, unchanged."""
    assert check_schedule(schedule) == schedule


@pytest.mark.parametrize("schedule", BAD)
def test_what_eventbridge_would_refuse_is_refused_at_synthesis(schedule: str) -> None:
    """The error shows a correct expression."""
    with pytest.raises(ValueError, match=r"rate\(|cron\("):
        check_schedule(schedule)


def test_a_singular_and_a_plural_are_put_right() -> None:
    """The error for the most common mistake shows the correction."""
    with pytest.raises(ValueError, match=r"^write rate\(1 day\)$"):
        check_schedule("rate(1 days)")
    with pytest.raises(ValueError, match=r"^write rate\(2 days\)$"):
        check_schedule("rate(2 day)")
