"""What somebody must be told, and the topic by which they are. infra/RUNBOOK.md has a section for each alarm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aws_cdk import Acknowledgment, Aws, Duration, Validations
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_sqs as sqs

    from infra.config import Config

__all__ = ["Alarms", "own_metric"]

_NAMESPACE: Final = "SoAL"
_PERIOD: Final = Duration.minutes(5)
_NEAR_TIMEOUT: Final = 0.97
"""The handler settles and answers before the timeout; a run that comes nearer than this was not master of its time."""
_SWEEPS_MISSED: Final = 4


@dataclass(frozen=True, slots=True)
class _Rule:
    """Raise when `metric` is at least `threshold` (`below`: less) in each of `periods`."""

    name: str
    says: str
    metric: cloudwatch.IMetric
    threshold: float = 1
    periods: int = 1
    below: bool = False


class Alarms(Construct):
    """All alarms, and `topic`."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        config: Config,
        job: lambda_.IFunction,
        sweeper: lambda_.IFunction,
        failures: sqs.IQueue,
        key: kms.IKey | None,
    ) -> None:
        super().__init__(scope, name)
        self.topic = _topic(self, config, key)
        self.alarms = [
            self._alarm(rule)
            for rule in (*_job_rules(config, job), *_sweeper_rules(config, sweeper), _queue_rule(failures))
        ]

    def _alarm(self, rule: _Rule) -> cloudwatch.Alarm:
        operators = cloudwatch.ComparisonOperator
        missing = cloudwatch.TreatMissingData
        alarm = cloudwatch.Alarm(
            self,
            rule.name,
            alarm_description=f"{rule.says}. infra/RUNBOOK.md: {rule.name}",
            comparison_operator=operators.LESS_THAN_THRESHOLD
            if rule.below
            else operators.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=rule.periods,
            metric=rule.metric,
            threshold=rule.threshold,
            treat_missing_data=missing.BREACHING if rule.below else missing.NOT_BREACHING,
        )
        alarm.add_alarm_action(actions.SnsAction(self.topic))
        return alarm


def own_metric(name: str, statistic: str = "Sum", period: Duration = _PERIOD) -> cloudwatch.Metric:
    """Return a metric that handler or sweeper write to the log."""
    return cloudwatch.Metric(
        namespace=_NAMESPACE,
        metric_name=name,
        dimensions_map={"service": Aws.STACK_NAME},
        statistic=statistic,
        period=period,
    )


def _job_rules(config: Config, job: lambda_.IFunction) -> tuple[_Rule, ...]:
    near_ms = config.timeout_s * 1000 * _NEAR_TIMEOUT
    dropped = job.metric("AsyncEventsDropped", statistic="Sum", period=_PERIOD)
    undelivered = job.metric("DestinationDeliveryFailures", statistic="Sum", period=_PERIOD)
    return (
        _Rule("RunsFailed", "Runs have failed", job.metric_errors(period=_PERIOD)),
        _Rule("RunsThrottled", "Runs could not start for want of concurrency", job.metric_throttles(period=_PERIOD)),
        _Rule(
            "NearTimeout",
            "A run came so near to the timeout that Lambda may have killed it",
            job.metric_duration(statistic="Maximum", period=_PERIOD),
            near_ms,
        ),
        _Rule("EventsDropped", "Events were dropped before they became runs", dropped),
        _Rule("FailuresLost", "A failure could not be written to the failure queue", undelivered),
        _Rule("RolledBack", "A write was rolled back: its batch is not in the table", own_metric("VerdictRolledBack")),
        _Rule("VerdictUnknown", "Whether a batch is in its table could not be found out", own_metric("VerdictUnknown")),
        _Rule("UndoRefused", "A commit stays that should have been undone", own_metric("UndoRefused")),
    )


def _sweeper_rules(config: Config, sweeper: lambda_.IFunction) -> tuple[_Rule, ...]:
    # A metric's period may not be longer than a day in all, and not shorter than a minute.
    long = min(config.sweep_minutes * _SWEEPS_MISSED, 24 * 60)
    period = Duration.minutes(max(5, config.sweep_minutes))
    return (
        _Rule("SweepErrors", "The sweeper failed", sweeper.metric_errors(period=_PERIOD)),
        _Rule(
            "SweepsMissing",
            "The sweeper has not run",
            sweeper.metric_invocations(period=Duration.minutes(long)),
            below=True,
        ),
        _Rule("SweptRolledBack", "The sweeper has rolled back a write of a dead run", own_metric("SweptRolledBack")),
        _Rule(
            "SweepUnsettled", "The sweeper finds a write that it cannot settle", own_metric("SweepFailed"), periods=1
        ),
        _Rule(
            "SweepUnreadable",
            "The sweeper finds a document of a version that it does not know",
            own_metric("SweepUnreadable"),
        ),
        _Rule(
            "OldestOpenWrite",
            f"A write has been open for {config.open_write_alarm_minutes} minutes",
            own_metric("OldestOpenMs", "Maximum", period),
            config.open_write_alarm_minutes * 60_000,
        ),
    )


def _queue_rule(failures: sqs.IQueue) -> _Rule:
    depth = failures.metric_approximate_number_of_messages_visible(statistic="Maximum", period=_PERIOD)
    return _Rule("FailureQueue", "Failed events wait for somebody", depth)


def _topic(scope: Construct, config: Config, key: kms.IKey | None) -> sns.Topic:
    topic = sns.Topic(scope, "Topic", display_name="SoAL", enforce_ssl=True, master_key=key)
    if config.alarm_email is not None:
        topic.add_subscription(subscriptions.EmailSubscription(config.alarm_email))
    Validations.of(topic).acknowledge(
        Acknowledgment(
            id="AwsSolutions::AwsSolutions-SNS2",
            reason="Alarms say a name and a number. CloudWatch cannot publish under Amazon's own key, and a key of the"
            " stack's own is a choice (context kms)",
        )
    )
    return topic
