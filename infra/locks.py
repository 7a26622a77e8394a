"""The table of locks, if jobs take their turns in DynamoDB instead of the checkpoint bucket."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from constructs import Construct


class LockTable(Construct):
    """A table with an item for each lock, under the key that `safewriter/coordination/backends/dynamodb.py` reads.

    It outlives the stack: a lock that starts again would issue tokens a second time. It holds only names and times, and
    uses DynamoDB's own encryption key.
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
        """The table as a value of `SW_LOCKS`."""
        return f"dynamodb://{self.table.table_name}"

    def job_statements(self) -> list[iam.PolicyStatement]:
        """Return the rights of the job's function here: to read and change a record, not to delete or list records."""
        return [
            iam.PolicyStatement(
                sid="TakeTurns",
                actions=["dynamodb:GetItem", "dynamodb:PutItem"],
                resources=[self.table.table_arn],
            )
        ]
