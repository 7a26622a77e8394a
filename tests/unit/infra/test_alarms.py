from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.metrics import NAMESPACE, emitted

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised

ROOT = Path(__file__).parents[3]


def own(metrics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [metric for metric in metrics if metric["Namespace"] == NAMESPACE]


def short(name: str) -> str:
    """Return the name of an alarm without the CDK's folder before it and hash behind it."""
    return re.sub(r"^Alarms|[0-9A-F]{8}$", "", name)


def test_every_alarm_watches_a_metric_that_somebody_writes(plain: Synthesised) -> None:
    """A misspelt name would be an alarm that never rings."""
    alarms = list(plain.of_type("CloudWatch::Alarm").values())

    ours = own(alarms)
    assert {alarm["MetricName"] for alarm in ours} <= emitted()
    assert {alarm["Namespace"] for alarm in alarms} == {"AWS/Lambda", "AWS/SQS", NAMESPACE}
    service = plain.the("Lambda::Function", "Runtime")["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]
    assert all(alarm["Dimensions"] == [{"Name": "service", "Value": service}] for alarm in ours)


def test_everything_that_needs_a_person_has_an_alarm(plain: Synthesised) -> None:
    """Failures, throttles, the timeout, verdicts, the sweeper, open writes and the failure queue are watched."""
    watched = {(alarm["Namespace"], alarm["MetricName"]) for alarm in plain.of_type("CloudWatch::Alarm").values()}

    assert watched == {
        *(("AWS/Lambda", name) for name in ("Errors", "Throttles", "Duration", "Invocations")),
        *(("AWS/Lambda", name) for name in ("AsyncEventsDropped", "DestinationDeliveryFailures")),
        *(("SoAL", name) for name in ("VerdictRolledBack", "VerdictUnknown", "UndoRefused")),
        *(("SoAL", name) for name in ("SweptRolledBack", "SweepFailed", "SweepUnreadable", "OldestOpenMs")),
        ("AWS/SQS", "ApproximateNumberOfMessagesVisible"),
    }


def test_the_duration_alarm_rings_before_the_timeout(plain: Synthesised, full: Synthesised) -> None:
    """Its threshold follows the function's timeout."""
    for stack, timeout_s in ((plain, 900), (full, 600)):
        threshold = stack.the("CloudWatch::Alarm", "AlarmsNearTimeout")["Threshold"]
        assert timeout_s * 900 < threshold < timeout_s * 1000


def test_silence_is_no_alarm_but_of_the_sweeper(plain: Synthesised) -> None:
    """A function that nobody invokes is well; a sweeper that does not run is not."""
    breaching = [
        short(name)
        for name, alarm in plain.of_type("CloudWatch::Alarm").items()
        if alarm["TreatMissingData"] == "breaching"
    ]

    assert breaching == ["SweepsMissing"]


def test_every_alarm_is_told_and_has_its_page(plain: Synthesised) -> None:
    """Each goes to the topic, and its description leads to a heading of the runbook; no heading is without an alarm."""
    (topic,) = plain.of_type("SNS::Topic")
    headings = re.findall(r"^## (\w+)$", (ROOT / "infra/RUNBOOK.md").read_text(), re.MULTILINE)
    alarms = plain.of_type("CloudWatch::Alarm")

    assert sorted(headings) == sorted(short(name) for name in alarms)
    for name, alarm in alarms.items():
        assert alarm["AlarmActions"] == [{"Ref": topic}]
        assert alarm["AlarmDescription"].endswith(f"RUNBOOK.md: {short(name)}")


def test_mail_is_sent_only_if_asked_for(plain: Synthesised, full: Synthesised) -> None:
    """The topic is there in any case; who else is to hear subscribes to it."""
    assert plain.of_type("SNS::Subscription") == {}
    assert full.the("SNS::Subscription")["Endpoint"] == "ops@example.org"
