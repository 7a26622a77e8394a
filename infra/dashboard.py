"""One page that shows how runs end, how long they take, and the open writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_cloudwatch as cloudwatch

from infra.alarm_rules import own_metric

if TYPE_CHECKING:
    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_sqs as sqs
    from constructs import Construct

    from infra.alarms import Alarms

__all__ = ["dashboard"]

_STATES = ("Success", "Failed", "TimedOut", "Incomplete", "Cancelled", "Unknown")


def dashboard(
    scope: Construct, *, alarms: Alarms, job: lambda_.IFunction, sweeper: lambda_.IFunction, failures: sqs.IQueue
) -> cloudwatch.Dashboard:
    """Make the dashboard."""
    page = cloudwatch.Dashboard(scope, "Dashboard")
    page.add_widgets(cloudwatch.AlarmStatusWidget(title="Alarms", alarms=list(alarms.alarms.values()), width=24))
    page.add_widgets(
        _graph("How runs ended", *(own_metric(f"State{state}") for state in _STATES)),
        _graph(
            "Verdicts on writes", *(own_metric(f"Verdict{name}") for name in ("Committed", "RolledBack", "Unknown"))
        ),
        _graph("Invocations", job.metric_invocations(), job.metric_errors(), job.metric_throttles()),
    )
    page.add_widgets(
        _graph("Time (ms)", *(own_metric(name, "p90") for name in ("SparkStartMs", "JobMs", "SettleMs", "TotalMs"))),
        _graph("Time left at the end (ms)", own_metric("RemainingMs", "Minimum")),
        _graph("Memory (MB)", own_metric("PeakMb", "Maximum")),
    )
    page.add_widgets(
        _graph("Sweeps", sweeper.metric_invocations(), sweeper.metric_errors()),
        _graph("Swept", *(own_metric(f"Swept{name}") for name in ("Committed", "RolledBack", "Cleaned"))),
        _graph(
            "Waiting",
            own_metric("OldestOpenMs", "Maximum"),
            failures.metric_approximate_number_of_messages_visible(),
        ),
    )
    return page


def _graph(title: str, *metrics: cloudwatch.IMetric) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(metrics), width=8)
