"""The roles' rights to read secrets of the job. The stack never sees the values: functions get references."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_iam as iam

from handler.variables import REFERENCE
from infra.storage import in_parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.config import Config


def job_statements(config: Config) -> list[iam.PolicyStatement]:
    """Return the right of the job's role: to read exactly these secrets."""
    return _read(config, config.secrets)


def sweeper_statements(config: Config) -> list[iam.PolicyStatement]:
    """Return the right of the sweeper's role: to read the secrets of catalogs."""
    return _read(config, config.catalog_secrets)


def regions_of(config: Config) -> list[str]:
    """Return the regions of all secrets."""
    matches = (REFERENCE.fullmatch(reference) for reference in config.secrets.values())
    return sorted({match["region"] for match in matches if match is not None})


def _read(config: Config, secrets: Mapping[str, str]) -> list[iam.PolicyStatement]:
    matches = [match for reference in secrets.values() if (match := REFERENCE.fullmatch(reference)) is not None]
    if not matches:
        return []
    arns = dict.fromkeys(match["arn"] for match in matches)
    statements = in_parts("ReadSecrets", ["secretsmanager:GetSecretValue"], list(arns))
    if config.secret_kms_key_arns:
        services = dict.fromkeys(f"secretsmanager.{match['region']}.amazonaws.com" for match in matches)
        statements.append(
            iam.PolicyStatement(
                sid="DecryptSecrets",
                actions=["kms:Decrypt"],
                resources=list(config.secret_kms_key_arns),
                conditions={
                    "StringEquals": {
                        "kms:ViaService": list(services),
                        "kms:EncryptionContext:SecretARN": list(arns),
                    }
                },
            )
        )
    return statements
