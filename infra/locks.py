"""The table of locks, where jobs take their turns by DynamoDB instead of the checkpoint bucket."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from constructs import Construct


class LockTable(Construct):
    """One item for each lock, under the key that `safewriter/coordination/backends/dynamodb.py` reads.

    It outlives the stack: a lock that begins anew would give tokens a second time. It holds names and times only, and
    stays under DynamoDB's own key.
    """

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        self.table = dynamodb.Table(
            self,
            "Table",
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            deletion_protection=True,
            partition_key=dynamodb.Attribute(name="lock", type=dynamodb.AttributeType.STRING),
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            removal_policy=RemovalPolicy.RETAIN,
        )

    @property
    def uri(self) -> str:
        """What `SW_LOCKS` names it by."""
        return f"dynamodb://{self.table.table_name}"

    def job_statements(self) -> list[iam.PolicyStatement]:
        """Return what the job's function may do here: read and change a record, not delete one, nor list them."""
        return [
            iam.PolicyStatement(
                sid="TakeTurns",
                actions=["dynamodb:GetItem", "dynamodb:PutItem"],
                resources=[self.table.table_arn],
            )
        ]
