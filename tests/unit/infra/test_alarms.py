"""The stack's alarms watch emitted metrics, cover every event that needs a person, and have runbook headings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from infra.alarm_rules import _dropped
from safewriter.deadline import Deadline
from safewriter.schedule import LEAD_MS, Schedule
from tests.support.metrics import NAMESPACE, emitted

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


def own(metrics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [metric for metric in metrics if metric["Namespace"] == NAMESPACE]


def short(name: str) -> str:
    """Return the name of an alarm without the CDK's folder before it and the hash after it."""
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
    """The alarms cover failures, throttles, the timeout, verdicts, the sweeper, open writes and the failure queue."""
    watched = {(alarm["Namespace"], alarm["MetricName"]) for alarm in plain.of_type("CloudWatch::Alarm").values()}

    assert watched == {
        *(("AWS/Lambda", name) for name in ("Errors", "Throttles", "Duration", "Invocations")),
        *(("AWS/Lambda", name) for name in ("AsyncEventsDropped", "DestinationDeliveryFailures")),
        ("AWS/Lambda", "RecursiveInvocationsDropped"),
        *(("SoAL", name) for name in ("VerdictRolledBack", "VerdictUnknown", "UndoRefused", "SweptUnclean")),
        *(("SoAL", name) for name in ("SweptRolledBack", "SweepFailed", "SweepUnreadable", "OldestOpenMs")),
        ("AWS/SQS", "ApproximateNumberOfMessagesVisible"),
    }


def test_what_one_asks_for_is_watched_too(plain: Synthesised, full: Synthesised) -> None:
    """A queue of jobs adds its age, a redrive its errors and parked messages, a gradual deployment the new version's
    errors.
    """
    more = {short(name): each for name, each in full.of_type("CloudWatch::Alarm").items()}
    for name in plain.of_type("CloudWatch::Alarm"):
        more.pop(short(name))
    (jobs,) = (name for name in full.of_type("SQS::Queue") if name.startswith("Triggers"))
    (redrive,) = (name for name in full.of_type("Lambda::Function") if name.startswith("Redrive"))

    assert more.keys() == {"JobQueueAge", "RedriveErrors", "ParkedFailures", "NewVersionFails"}
    age = more["JobQueueAge"]
    assert (age["MetricName"], age["Threshold"]) == ("ApproximateAgeOfOldestMessage", 360 * 60)
    assert age["Dimensions"] == [{"Name": "QueueName", "Value": {"Fn::GetAtt": [jobs, "QueueName"]}}]
    assert more["RedriveErrors"]["MetricName"] == "Errors"
    assert more["RedriveErrors"]["Dimensions"] == [{"Name": "FunctionName", "Value": {"Ref": redrive}}]


@pytest.mark.parametrize(
    ("retries", "said"), [(0, "its one attempt has"), (1, "its 2 attempts"), (2, "its 3 attempts")]
)
def test_what_is_given_up_is_told_with_the_number_of_its_attempts(retries: int, said: str) -> None:
    """Lambda counts an event as dropped once all of the configured attempts have failed."""
    assert said in _dropped(retries)
    assert "waited too long" in _dropped(retries)


def test_the_guide_tells_how_many_alarms_there_are(plain: Synthesised, full: Synthesised) -> None:
    """The guide gives the number because alarms cost by the month."""
    least, most = (len(stack.of_type("CloudWatch::Alarm")) for stack in (plain, full))

    assert f"{least} to {most} alarms" in " ".join((ROOT / "docs/guides/deploying.md").read_text().split())


def test_the_duration_alarm_rings_for_a_run_that_its_handler_did_not_end(plain: Synthesised, full: Synthesised) -> None:
    """A run that the handler ended at its deadline takes less time, and one that Lambda killed takes more."""
    for stack, timeout_s in ((plain, 900), (full, 600)):
        threshold = stack.the("CloudWatch::Alarm", "AlarmsNearTimeout")["Threshold"]
        assert Schedule.of(Deadline(timeout_s * 1000, 0), LEAD_MS).settle_by_ms < threshold < timeout_s * 1000


def test_silence_is_no_alarm_but_of_the_sweeper(plain: Synthesised) -> None:
    """A function without invocations is fine; a sweeper that does not run is not."""
    breaching = [
        short(name)
        for name, alarm in plain.of_type("CloudWatch::Alarm").items()
        if alarm["TreatMissingData"] == "breaching"
    ]

    assert breaching == ["SweepsMissing"]


def test_every_alarm_is_told_and_has_its_page(full: Synthesised, durable: Synthesised) -> None:
    """Start and end of an alarm go to the topic, whose text links to a runbook heading; every heading has an alarm."""
    headings = re.findall(r"^## (\w+)$", (ROOT / "docs/guides/runbook.md").read_text(), re.MULTILINE)
    stacks = [(stack.of_type("SNS::Topic"), stack.of_type("CloudWatch::Alarm")) for stack in (full, durable)]

    assert sorted(headings) == sorted({short(name) for _, alarms in stacks for name in alarms})
    for (topic,), alarms in stacks:
        for name, alarm in alarms.items():
            assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": topic}]
            assert alarm["AlarmDescription"].endswith(f"runbook.md: {short(name)}")


def test_mail_is_sent_only_if_asked_for(plain: Synthesised, full: Synthesised) -> None:
    """The topic always exists; other receivers subscribe to it."""
    assert plain.of_type("SNS::Subscription") == {}
    assert full.the("SNS::Subscription")["Endpoint"] == "ops@example.org"
