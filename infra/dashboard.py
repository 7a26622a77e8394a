"""One page that shows how runs end, how long they take, and the open writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_cloudwatch as cloudwatch

from infra.alarm_rules import own_metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_sqs as sqs
    from constructs import Construct

    from infra.alarms import Alarms

_STATES = ("Success", "Failed", "TimedOut", "Incomplete", "Cancelled", "Unknown")
_ENDS = ("Started", "Succeeded", "Failed", "TimedOut", "Stopped")


def dashboard(
    scope: Construct,
    *,
    alarms: Alarms,
    job: lambda_.IFunction,
    sweeper: lambda_.IFunction,
    failed: Sequence[sqs.IQueue],
    is_durable: bool,
) -> cloudwatch.Dashboard:
    """Create the dashboard, with a row for executions if the job's function is durable."""
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
    if is_durable:
        page.add_widgets(
            _graph("How executions ended", *(job.metric(f"DurableExecution{end}", statistic="Sum") for end in _ENDS)),
            _graph("Time of an execution (ms)", job.metric("DurableExecutionDuration", statistic="p90")),
            _graph("Running", job.metric("ApproximateRunningDurableExecutions", statistic="Maximum")),
        )
    page.add_widgets(
        _graph("Sweeps", sweeper.metric_invocations(), sweeper.metric_errors()),
        _graph("Swept", *(own_metric(f"Swept{name}") for name in ("Committed", "RolledBack", "Cleaned"))),
        _graph(
            "Waiting",
            own_metric("OldestOpenMs", "Maximum"),
            *(queue.metric_approximate_number_of_messages_visible() for queue in failed),
        ),
    )
    return page


def _graph(title: str, *metrics: cloudwatch.IMetric) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(metrics), width=8)
