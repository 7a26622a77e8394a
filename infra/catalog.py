"""The rights of jobs and the sweeper in the Glue Data Catalog: to read and change tables of the named databases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Aws

from infra.storage import in_parts

if TYPE_CHECKING:
    from aws_cdk import aws_iam as iam

    from infra.config import Config


def job_statements(config: Config) -> list[iam.PolicyStatement]:
    """Return the statements for the job's role; none without databases."""
    if not config.glue_databases:
        return []
    actions = [
        "glue:GetDatabase",
        "glue:GetTable",
        "glue:GetTables",
        "glue:GetPartitions",
        "glue:BatchGetPartition",
        "glue:CreateTable",
        "glue:UpdateTable",
    ]
    return _use(config, actions)


def sweeper_statements(config: Config) -> list[iam.PolicyStatement]:
    """Return the statements for the sweeper's role: settling an Iceberg table changes its entry."""
    return _use(config, ["glue:GetTable", "glue:UpdateTable"]) if config.glue_databases else []


def _use(config: Config, actions: list[str]) -> list[iam.PolicyStatement]:
    prefix = f"arn:{Aws.PARTITION}:glue:{Aws.REGION}:{Aws.ACCOUNT_ID}"
    tables = [f"{prefix}:{path}" for name in config.glue_databases for path in (f"database/{name}", f"table/{name}/*")]
    return in_parts("UseCatalog", actions, [f"{prefix}:catalog", *tables])
