"""The rules of the alarms: metrics and thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Final

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from safewriter.deadline import Deadline
from safewriter.schedule import LEAD_MS, Schedule

if TYPE_CHECKING:
    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_sqs as sqs

    from infra.config import Config

_NAMESPACE: Final = "SoAL"
_PERIOD: Final = Duration.minutes(5)
_SWEEPS_MISSED: Final = 4
_EXPLAINED_MINUTES: Final = 3
"""How long the alarm of a deployment waits for the word that an error was a caller's mistake. CodeDeploy's shortest
strategy moves all runs after five minutes.
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """Raise when `metric` is at least `threshold` (`below`: less, or missing) in `breaching` of the last `periods`."""

    name: str
    says: str
    metric: cloudwatch.IMetric
    threshold: float = 1
    below: bool = False
    periods: int = 1
    breaching: int | None = None
    """All of them if None."""
    version: str | None = None
    """Of the function, if the alarm is about one version of it: the next one gets another alarm."""


def own_metric(name: str, statistic: str = "Sum", period: Duration = _PERIOD) -> cloudwatch.Metric:
    """Return a metric that the handler or the sweeper writes to the log."""
    return cloudwatch.Metric(
        namespace=_NAMESPACE,
        metric_name=name,
        dimensions_map={"service": Aws.STACK_NAME},
        statistic=statistic,
        period=period,
    )


def job_rules(config: Config, job: lambda_.IFunction) -> tuple[Rule, ...]:
    """Return the alarms about runs and their writes."""
    # By then the handler has answered, also for a run that reached its deadline.
    answered_ms = Schedule.of(Deadline(config.timeout_s * 1000, 0), config.warn_before_ms or LEAD_MS).record_by_ms

    def summed(name: str) -> cloudwatch.Metric:
        return job.metric(name, statistic="Sum", period=_PERIOD)

    return (
        Rule("RunsFailed", "Runs have failed", job.metric_errors(period=_PERIOD)),
        Rule("RunsThrottled", "Lambda throttled runs: no concurrency was left", job.metric_throttles(period=_PERIOD)),
        Rule(
            "NearTimeout",
            "A run took longer than the handler lets it, so Lambda has probably killed it",
            job.metric_duration(statistic="Maximum", period=_PERIOD),
            answered_ms,
        ),
        Rule("EventsDropped", _dropped(config.retry_attempts), summed("AsyncEventsDropped")),
        Rule("LoopStopped", "Lambda has taken a chain of runs for a loop", summed("RecursiveInvocationsDropped")),
        Rule(
            "FailuresLost",
            "A failure could not be written to the failure queue",
            summed("DestinationDeliveryFailures" if config.durable is None else "DeadLetterErrors"),
        ),
        Rule("RolledBack", "A write was rolled back: its batch is not in the table", own_metric("VerdictRolledBack")),
        Rule("VerdictUnknown", "Whether a batch is in its table could not be found out", own_metric("VerdictUnknown")),
        Rule("UndoRefused", "A commit stays that should have been undone", own_metric("UndoRefused")),
    )


def execution_rules(job: lambda_.IFunction) -> tuple[Rule, ...]:
    """Return the alarms about durable executions.

    https://docs.aws.amazon.com/lambda/latest/dg/durable-monitoring.html
    """

    def count(end: str) -> cloudwatch.Metric:
        return job.metric(f"DurableExecution{end}", statistic="Sum", period=_PERIOD)

    return (
        Rule("ExecutionsFailed", "Durable executions have failed: the last attempt did not end well", count("Failed")),
        Rule("ExecutionsTimedOut", "Durable executions have had no more time", count("TimedOut")),
    )


def _dropped(retry_attempts: int) -> str:
    """Describe the alarm for dropped asynchronous events; the metric counts events that failed or never started.

    https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
    """
    tries = "its one attempt has" if retry_attempts == 0 else f"its {retry_attempts + 1} attempts have"
    return f"Asynchronous events were given up: {tries} failed, or it has waited too long for one"


def sweeper_rules(config: Config, sweeper: lambda_.IFunction) -> tuple[Rule, ...]:
    """Return the alarms about sweeps, and about the writes that they find."""
    # The periods of an alarm may cover at most a day, and a period at least a minute.
    long = min(config.sweep_minutes * _SWEEPS_MISSED, 24 * 60)
    period = Duration.minutes(max(5, config.sweep_minutes))
    return (
        Rule("SweepErrors", "The sweeper failed", sweeper.metric_errors(period=_PERIOD)),
        Rule(
            "SweepsMissing",
            "The sweeper has not run",
            sweeper.metric_invocations(period=Duration.minutes(long)),
            below=True,
        ),
        Rule("SweptRolledBack", "The sweeper has rolled back a write of a dead run", own_metric("SweptRolledBack")),
        Rule("SweptUnclean", "The sweeper cannot remove what a settled write has left", own_metric("SweptUnclean")),
        Rule("SweepUnsettled", "The sweeper finds a write that it cannot settle", own_metric("SweepFailed")),
        Rule(
            "SweepUnreadable",
            "The sweeper finds a document or a marker that it cannot read",
            own_metric("SweepUnreadable"),
        ),
        Rule(
            "OldestOpenWrite",
            f"A write has been open for {config.open_write_alarm_minutes} minutes",
            own_metric("OldestOpenMs", "Maximum", period),
            config.open_write_alarm_minutes * 60_000,
        ),
    )


def queue_rules(
    config: Config, failures: sqs.IQueue, undelivered: sqs.IQueue, jobs: sqs.IQueue | None
) -> tuple[Rule, ...]:
    """Return the alarms about waiting messages: at once in queues without a consumer, later for jobs."""
    rules = [
        Rule("FailureQueue", "Failed events wait for somebody", _depth(failures)),
        Rule("ScheduleUndelivered", "EventBridge could not invoke sweeper or redrive", _depth(undelivered)),
    ]
    if jobs is not None:
        age = jobs.metric_approximate_age_of_oldest_message(statistic="Maximum", period=_PERIOD)
        says = f"A job has waited in the queue for {config.queue_age_alarm_minutes} minutes"
        rules.append(Rule("JobQueueAge", says, age, config.queue_age_alarm_minutes * 60))
    return tuple(rules)


def redrive_rules(redrive: lambda_.IFunction, parked: sqs.IQueue) -> tuple[Rule, ...]:
    """Return the alarms about the redrive, and about messages that it has set aside."""
    return (
        Rule("RedriveErrors", "The redrive failed", redrive.metric_errors(period=_PERIOD)),
        Rule("ParkedFailures", "Failed events that no redrive can help wait for somebody", _depth(parked)),
    )


def _depth(queue: sqs.IQueue) -> cloudwatch.Metric:
    return queue.metric_approximate_number_of_messages_visible(statistic="Maximum", period=_PERIOD)


def deployment_rule(config: Config, alias: lambda_.Alias) -> Rule:
    """Return the alarm that reverts a gradual deployment: Lambda's errors of the new version minus the usage errors.

    Without the subtraction one bad event would roll back any deployment. A handler that was killed, or did not start,
    reports no usage error, so such a run counts.

    The two counts reach CloudWatch separately, so a usage error that is not there yet does not mean that there is none.
    The sum of what is left must therefore stand for some minutes. A usage error that comes meanwhile takes it back,
    also one dated a minute later: between the two dates may lie a cold start. Lambda dates an error at the run's begin,
    so the error of a run longer than these minutes gets no such wait, and the alarm looks back over the longest run.

    AWS advises against RUNNING_SUM in alarms, since CloudWatch reads more minutes than the alarm names. Here those only
    bring older errors of the same version, which count as well.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
    https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
    https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/automating-updates-to-serverless-apps.html
    """
    name = alias.lambda_.function_name
    dimensions = {
        "FunctionName": name,
        "Resource": f"{name}:{alias.alias_name}",
        "ExecutedVersion": alias.version.version,
    }
    errors = cloudwatch.Metric(
        namespace="AWS/Lambda",
        metric_name="Errors",
        dimensions_map=dimensions,
        statistic="Sum",
        period=Duration.minutes(1),
    )
    usage_errors = cloudwatch.Metric(
        namespace=_NAMESPACE,
        metric_name="UsageErrors",
        dimensions_map={"service": Aws.STACK_NAME, "version": alias.version.version},
        statistic="Sum",
        period=Duration.minutes(1),
    )
    failures = cloudwatch.MathExpression(
        expression="RUNNING_SUM(FILL(errors, 0) - FILL(usage, 0))",
        label="failures of the new version",
        period=Duration.minutes(1),
        using_metrics={"errors": errors, "usage": usage_errors},
    )
    return Rule(
        "NewVersionFails",
        "A run of the version that is being deployed has failed",
        failures,
        periods=ceil(config.timeout_s / 60) + _EXPLAINED_MINUTES,
        breaching=_EXPLAINED_MINUTES,
        version=alias.version.version,
    )
