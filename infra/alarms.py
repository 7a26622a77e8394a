"""The alarms and their topic. docs/guides/runbook.md has a section for each alarm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, Aws, Validations
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aws_cdk import aws_kms as kms

    from infra.alarm_rules import Rule


class Alarms(Construct):
    """All alarms by name, and `topic`, which is notified when an alarm begins and when it ends."""

    def __init__(
        self, scope: Construct, name: str, *, rules: Iterable[Rule], email: str | None, key: kms.IKey | None
    ) -> None:
        super().__init__(scope, name)
        self.topic = _topic(self, email, key)
        self.alarms = {rule.name: self._alarm(rule) for rule in rules}

    def _alarm(self, rule: Rule) -> cloudwatch.Alarm:
        operators = cloudwatch.ComparisonOperator
        treatment = cloudwatch.TreatMissingData
        alarm = cloudwatch.Alarm(
            self,
            rule.name,
            # An alarm that is only changed keeps its state: ringing for one version, it would end the next one's
            # deployment. https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
            alarm_name=None if rule.version is None else f"{Aws.STACK_NAME}-{rule.name}-{rule.version}",
            alarm_description=f"{rule.says}. docs/guides/runbook.md: {rule.name}",
            comparison_operator=operators.LESS_THAN_THRESHOLD
            if rule.below
            else operators.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=rule.periods,
            datapoints_to_alarm=rule.breaching,
            metric=rule.metric,
            threshold=rule.threshold,
            treat_missing_data=treatment.BREACHING if rule.below else treatment.NOT_BREACHING,
        )
        action = actions.SnsAction(self.topic)
        alarm.add_alarm_action(action)
        alarm.add_ok_action(action)
        return alarm


def _topic(scope: Construct, email: str | None, key: kms.IKey | None) -> sns.Topic:
    topic = sns.Topic(scope, "Topic", display_name="SoAL", enforce_ssl=True, master_key=key)
    # The policy for TLS replaces the topic's default policy, which lets CloudWatch publish.
    topic.add_to_resource_policy(
        iam.PolicyStatement(
            sid="AlarmsPublish",
            principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
            actions=["sns:Publish"],
            resources=[topic.topic_arn],
            conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
        )
    )
    if email is not None:
        mail = topic.add_subscription(subscriptions.EmailSubscription(email))
        Validations.of(mail).acknowledge(
            Acknowledgment(
                id="Serverless::Serverless-SNSRedrivePolicy",
                reason="A mail that was handed over counts as delivered; what rings is also on the dashboard",
            )
        )
    Validations.of(topic).acknowledge(
        Acknowledgment(
            id="AwsSolutions::AwsSolutions-SNS2",
            reason="Alarms say a name and a number. CloudWatch cannot publish under Amazon's own key, and a key of the"
            " stack's own is a choice (context kms)",
        )
    )
    return topic
