"""CodeDeploy shifts the function's alias to a new version step by step, and back if that version fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import pytest

from infra.config import Deployment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.support.cloud import Synthesised


def test_a_version_gets_all_runs_at_once_unless_asked_for(plain: Synthesised) -> None:
    """Without gradual_deployment the stack has no CodeDeploy resource."""
    (alias,) = (each for each in plain.template["Resources"].values() if each["Type"] == "AWS::Lambda::Alias")

    assert not [kind for kind in plain.types() if "CodeDeploy" in kind]
    assert "UpdatePolicy" not in alias


def test_the_alias_is_moved_by_codedeploy_and_back_if_the_alarm_rings(full: Synthesised) -> None:
    """The group uses the requested strategy, watches the alarm, and rolls the deployment back."""
    ((name, group),) = full.of_type("CodeDeploy::DeploymentGroup").items()
    (alias,) = (each for each in full.template["Resources"].values() if each["Type"] == "AWS::Lambda::Alias")
    (alarm,) = (each for each in full.of_type("CloudWatch::Alarm") if "NewVersionFails" in each)
    (policy,) = (each for each in full.of_type("IAM::Policy") if each.startswith("DeploymentRole"))

    assert alias["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]["DeploymentGroupName"] == {"Ref": name}
    assert group["DeploymentConfigName"] == "CodeDeployDefault.LambdaCanary10Percent10Minutes"
    assert group["AlarmConfiguration"] == {"Alarms": [{"Name": {"Ref": alarm}}], "Enabled": True}
    assert "DEPLOYMENT_STOP_ON_ALARM" in group["AutoRollbackConfiguration"]["Events"]
    assert policy in full.template["Resources"][name]["DependsOn"]


def test_the_alarm_looks_at_the_new_version_only(full: Synthesised) -> None:
    """A job that has always failed does not roll a deployment back; one failure of the new version does."""
    alarm = full.the("CloudWatch::Alarm", "AlarmsNewVersionFails")
    (version,) = full.of_type("Lambda::Version")
    name, dimensions = watched(full, "errors")

    assert dimensions["ExecutedVersion"] == {"Fn::GetAtt": [version, "Version"]}
    assert full.resolved(dimensions["Resource"]) == f"{full.resolved(dimensions['FunctionName'])}:live"
    assert (name, alarm["Threshold"], alarm["TreatMissingData"]) == ("Errors", 1, "notBreaching")
    assert full.resolved(alarm["AlarmName"]) == f"Soal-NewVersionFails-{version}.Version"


def test_a_caller_s_mistake_takes_no_deployment_back(full: Synthesised) -> None:
    """The alarm subtracts the usage errors that the version's handler has counted."""
    (version,) = full.of_type("Lambda::Version")

    assert watched(full, "usage") == (
        "UsageErrors",
        {"service": {"Ref": "AWS::StackName"}, "version": {"Fn::GetAtt": [version, "Version"]}},
    )


@dataclass(frozen=True)
class Count:
    """A data point of a run: the minute of its date, and the one in which CloudWatch gets it."""

    metric: str
    dated: int
    comes: int


ERROR = Count("errors", 0, 1)


@pytest.mark.parametrize(
    ("counts", "at"),
    [
        ([ERROR], 3),
        ([ERROR, Count("usage", 0, 1)], None),
        ([ERROR, Count("usage", 0, 2)], None),
        ([ERROR, Count("usage", 1, 2)], None),
        ([ERROR, ERROR, Count("usage", 0, 2)], 3),
        ([Count("errors", 0, 12)], 12),
    ],
    ids=["no word", "a mistake", "told late", "told a minute later", "one of two", "the longest run"],
)
def test_an_error_counts_when_nobody_has_called_it_a_mistake_for_three_minutes(
    full: Synthesised, counts: Sequence[Count], at: int | None
) -> None:
    """The counts come independently, so a missing word is none yet; a version that does not start never gives one. A
    run of ten minutes, the timeout, is dated at its begin.
    """
    alarm = full.the("CloudWatch::Alarm", "AlarmsNewVersionFails")
    (told,) = (one for one in alarm["Metrics"] if "Expression" in one)

    assert told.get("ReturnData", True)
    for more in (0, 5):  # minutes that CloudWatch may read beyond those that the alarm names
        rings = (minute for minute in range(1, 30) if is_ringing(alarm, told["Expression"], counts, minute, more))
        assert next(rings, None) == at


def is_ringing(alarm: Mapping[str, Any], expression: str, counts: Sequence[Count], minute: int, more: int) -> bool:
    """Return whether the alarm rings when CloudWatch evaluates it at the beginning of a minute."""
    periods = alarm["EvaluationPeriods"]

    def series(name: str) -> Series:
        dated = [count.dated for count in counts if count.metric == name and count.comes <= minute]
        return Series([dated.count(each) for each in range(minute - periods - more, minute)])

    functions = {"FILL": lambda series, _: series, "RUNNING_SUM": Series.running_sum}
    values = eval(expression, {**functions, "errors": series("errors"), "usage": series("usage")})  # noqa: S307 - ours
    breaching = sum(value >= alarm["Threshold"] for value in values.points[-periods:])
    return bool(breaching >= alarm.get("DatapointsToAlarm", periods))


@dataclass(frozen=True)
class Series:
    """A time series of CloudWatch with a value for each minute, 0 for a missing one."""

    points: Sequence[int]

    def __sub__(self, other: Series) -> Series:
        return Series([mine - its for mine, its in zip(self.points, other.points, strict=True)])

    def running_sum(self) -> Series:
        return Series([sum(self.points[: end + 1]) for end in range(len(self.points))])


def watched(stack: Synthesised, name: str) -> tuple[str, dict[str, Any]]:
    alarm = stack.the("CloudWatch::Alarm", "AlarmsNewVersionFails")
    (metric,) = (one["MetricStat"]["Metric"] for one in alarm["Metrics"] if one["Id"] == name)
    return metric["MetricName"], {each["Name"]: each["Value"] for each in metric["Dimensions"]}


def test_it_can_move_this_alias_and_no_other(full: Synthesised) -> None:
    """CodeDeploy's role is not Amazon's managed one, which may move every alias of the account."""
    access = full.access("DeploymentRole")
    (name,) = full.of_type("Lambda::Alias")
    alias = full.resolved({"Ref": name})

    assert access.may("lambda:UpdateAlias", alias)
    assert not access.may("lambda:UpdateAlias", alias.replace("runtime", "sweeper"))
    assert not access.may("lambda:InvokeFunction", alias)
    assert not access.may("lambda:UpdateFunctionCode", alias)


def test_every_way_that_can_be_chosen_is_one_of_codedeploys() -> None:
    """A name unknown to the library would fail the synthesis."""
    from aws_cdk.aws_codedeploy import LambdaDeploymentConfig

    assert all(hasattr(LambdaDeploymentConfig, how.upper()) for how in get_args(Deployment))
