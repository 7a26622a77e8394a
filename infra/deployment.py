"""Let CodeDeploy shift runs to a new version of the job's function step by step, and shift them back if one fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Aws
from aws_cdk import aws_codedeploy as codedeploy
from aws_cdk import aws_iam as iam
from constructs import Construct

if TYPE_CHECKING:
    from aws_cdk import aws_cloudwatch as cloudwatch
    from aws_cdk import aws_lambda as lambda_

    from infra.config import Deployment


class GradualDeployment(Construct):
    """CodeDeploy moves the alias by `strategy`, and back when `alarm` is raised."""

    def __init__(
        self, scope: Construct, name: str, *, strategy: Deployment, alias: lambda_.Alias, alarm: cloudwatch.IAlarm
    ) -> None:
        super().__init__(scope, name)
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("codedeploy.amazonaws.com"))
        # Not Amazon's managed policy, which may move every alias of the account.
        arn = alias.lambda_.function_arn
        role.add_to_policy(
            iam.PolicyStatement(
                sid="MoveAlias",
                actions=["lambda:GetAlias", "lambda:UpdateAlias", "lambda:GetProvisionedConcurrencyConfig"],
                resources=[arn, f"{arn}:{alias.alias_name}"],
            )
        )
        role.add_to_policy(
            iam.PolicyStatement(
                sid="SeeAlarms",
                actions=["cloudwatch:DescribeAlarms"],
                resources=[f"arn:{Aws.PARTITION}:cloudwatch:{Aws.REGION}:{Aws.ACCOUNT_ID}:alarm:*"],
            )
        )
        group = codedeploy.LambdaDeploymentGroup(
            self,
            "Group",
            alarms=[alarm],
            alias=alias,
            auto_rollback=codedeploy.AutoRollbackConfig(deployment_in_alarm=True, failed_deployment=True),
            deployment_config=getattr(codedeploy.LambdaDeploymentConfig, strategy.upper()),
            role=role.without_policy_updates(),
        )
        group.node.add_dependency(role)  # with its policy
