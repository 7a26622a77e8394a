"""A function on Managed Instances: https://docs.aws.amazon.com/lambda/latest/dg/lambda-managed-instances.html."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cfnlint.api import lint
from cfnlint.config import ManualArgs

from handler.spark.machine import Machine
from infra.context import read_context
from infra.contradictions import ConfigError
from safewriter.deadline import Deadline
from safewriter.schedule import LEAD_MS, Schedule

if TYPE_CHECKING:
    from tests.support.cloud import Synthesised

PROVIDER = "arn:aws:lambda:us-east-1:123456789012:capacity-provider:spark"
MANAGED = {"capacity_provider": PROVIDER}
LONG = {**MANAGED, "timeout_s": "5400", "open_write_alarm_minutes": "91"}


def function(stack: Synthesised) -> tuple[str, dict[str, Any]]:
    """Return the function's logical id and properties."""
    ((name, properties),) = (
        (key, each) for key, each in stack.of_type("Lambda::Function").items() if key.startswith("Runtime")
    )
    return name, properties


def test_an_environment_gets_one_event_at_a_time(managed: Synthesised) -> None:
    """Lambda's own default is sixteen for each processor; no version is published beside that of the alias."""
    _, properties = function(managed)
    assert properties["CapacityProviderConfig"] == {
        "LambdaManagedInstancesCapacityProviderConfig": {
            "CapacityProviderArn": PROVIDER,
            "ExecutionEnvironmentMemoryGiBPerVCpu": 2,
            "PerExecutionEnvironmentMaxConcurrency": 1,
        }
    }
    assert properties["PublishToLatestPublished"] is False


def test_the_handler_counts_the_processors_that_the_stack_asks_for(managed: Synthesised) -> None:
    """One for each two gigabytes, without the six of a plain function."""
    _, properties = function(managed)
    config = properties["CapacityProviderConfig"]["LambdaManagedInstancesCapacityProviderConfig"]
    wanted = properties["MemorySize"] // (config["ExecutionEnvironmentMemoryGiBPerVCpu"] * 1024)
    assert Machine(properties["MemorySize"], cores_present=64, is_managed=True).cores == wanted == 16


def test_only_jobs_are_on_managed_instances(managed: Synthesised, plain: Synthesised) -> None:
    """The sweeper and the redrive stay plain functions."""
    assert [name for name, each in managed.of_type("Lambda::Function").items() if "CapacityProviderConfig" in each] == [
        function(managed)[0]
    ]
    assert not any("CapacityProviderConfig" in each for each in plain.of_type("Lambda::Function").values())


def test_a_plain_function_is_replaced_and_that_is_said(managed: Synthesised, plain: Synthesised) -> None:
    """Lambda puts a function on Managed Instances only at its creation."""
    assert function(managed)[0] != function(plain)[0]
    assert "soal:capacity" in managed.warnings
    assert "soal:capacity" not in plain.warnings


def test_all_that_follows_from_the_timeout_is_as_long(managed: Synthesised) -> None:
    """A message stays hidden for six timeouts, and the alarms ring for no run that is alive."""
    timeout_s = function(managed)[1]["Timeout"]
    assert timeout_s == 5400
    assert managed.the("SQS::Queue", "Triggers")["VisibilityTimeout"] == 6 * timeout_s <= 43_200  # the most of SQS
    near = managed.the("CloudWatch::Alarm", "AlarmsNearTimeout")["Threshold"]
    assert near == Schedule.of(Deadline(timeout_s * 1000, 0), LEAD_MS * 2 // 3).record_by_ms
    assert managed.the("CloudWatch::Alarm", "AlarmsOldestOpenWrite")["Threshold"] > timeout_s * 1000
    assert managed.the("CloudWatch::Alarm", "AlarmsJobQueueAge")["Threshold"] > 6 * timeout_s


def test_cloudformation_knows_the_template(managed: Synthesised) -> None:
    """By the services' own schemas."""
    args = ManualArgs(regions=["us-east-1"], ignore_checks=["I", "W"])
    assert [match.message for match in lint(managed.path.read_text(), config=args)] == []


@pytest.mark.parametrize(
    ("context", "key", "remedy"),
    [
        ({"timeout_s": "901"}, "timeout_s", "must be less than or equal to 900; only Managed Instances"),
        ({"memory_mb": "10241"}, "memory_mb", "must be less than or equal to 10240; only Managed Instances"),
        ({**MANAGED, "timeout_s": "5401"}, "timeout_s", "less than or equal to 5400"),
        ({**MANAGED, "memory_mb": "32769"}, "memory_mb", "less than or equal to 32768"),
        ({**MANAGED, "memory_mb": "2047"}, "memory_mb", "at least 2048"),
        ({"capacity_provider": "spark"}, "capacity_provider", "not the ARN of a capacity provider"),
        ({"capacity_provider": PROVIDER.replace("capacity-provider", "function")}, "capacity_provider", "not the ARN"),
        ({**MANAGED, "network": "own"}, "network", "in the provider's network"),
        ({**MANAGED, "reserved_concurrency": "2"}, "reserved_concurrency", "leave this out"),
        ({**MANAGED, "provisioned_concurrency": "2"}, "provisioned_concurrency", "leave this out"),
        ({**LONG, "state_machine": "true"}, "state_machine", "after 900 s"),
        ({**LONG, "open_write_alarm_minutes": "90"}, "open_write_alarm_minutes", "a run that is alive"),
        ({**LONG, "queue": "true"}, "queue_age_alarm_minutes", "it returns after 540 minutes"),
    ],
)
def test_what_lambda_would_refuse_is_refused_here(context: dict[str, object], key: str, remedy: str) -> None:
    """The error names the key, and the value to write instead."""
    with pytest.raises(ConfigError) as caught:
        read_context(context)

    assert caught.value.key == key
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    "more", [{"durable": "3d"}, {"continue_max": "2"}, {"schedule": "rate(1 day)", "entry_point": "a.py"}]
)
def test_ways_of_long_runs_stay_open(more: dict[str, str]) -> None:
    """Durable executions, continuations and asynchronous events have the whole time."""
    assert read_context({**LONG, **more}).timeout_s == 5400
