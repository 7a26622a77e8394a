"""Two stacks, synthesised once for all tests: one with defaults only, and one with every option.

`python -m infra.app` makes the first in a separate process, this process the second, under cdk-nag's rules.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.cloud import IMAGE, Synthesised, run_app, synthesise

if TYPE_CHECKING:
    from pathlib import Path

KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:lake/db-AbCdEf"
OTHER_SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:api-GhIjKl"
PLAIN = {"image_uri": IMAGE, "data": "my-lake/tables"}
FULL = {
    **PLAIN,
    "data": "my-lake/tables, warehouse",
    "secret_kms_key_arns": KEY,
    "secrets": json.dumps({"PGPASSWORD": f"{SECRET}#password", "API_PASS": OTHER_SECRET}),
    "stack_name": "Nightly",
    "architecture": "arm64",
    "alarm_email": "ops@example.org",
    "audit_log": "false",
    "conf": '{"spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog"}',
    "conf_allow": "spark.sql.ansi.enabled spark.sql.session.timeZone=E*",
    "conditional_commits": "true",
    "coordination": "dynamodb",
    "data_kms_key_arns": KEY,
    "entry_point": "jobs/nightly.py",
    "environment": '{"TABLE": "s3a://my-lake/tables/t", "PYICEBERG_CATALOG__LAKE__URI": "https://catalog.example.org"}',
    "event_logs": "on",
    "gradual_deployment": "canary_10_percent_10_minutes",
    "glue_databases": "sales",
    "jit": "full",
    "kms": "true",
    "lake_bucket": "true",
    "network": "own",
    "queue": "true",
    "provisioned_concurrency": "2",
    "read_only_data": "raw/archive",
    "redrive_attempts": "3",
    "reserved_concurrency": "5",
    "retry_attempts": "1",
    "s3_trigger": "raw/in",
    "schedule": "rate(1 day)",
    "schedules": json.dumps({"hourly": {"schedule": "rate(1 hour)", "script": "jobs/hourly.py", "arguments": ["a b"]}}),
    "scripts": "my-scripts/spark",
    "state_machine": "true",
    "tags": '{"team": "data"}',
    "timeout_s": "600",
    "tracing": "true",
    "turns": '{"table": {"Ingestion": {"script": "jobs/ingestion.py"}}}',
    "warn_before_ms": "20000",
}


@pytest.fixture(scope="session")
def full_context() -> dict[str, str]:
    return FULL


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    return run_app(PLAIN, _folder(tmp_path_factory))


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    return synthesise(FULL, _folder(tmp_path_factory))


@pytest.fixture(scope="session")
def plain_with_key(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    return synthesise({**PLAIN, "kms": "true"}, _folder(tmp_path_factory))


@pytest.fixture(scope="session")
def full_without_key(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    return synthesise({**FULL, "kms": "false"}, _folder(tmp_path_factory))


@pytest.fixture(scope="session")
def continuing(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    return synthesise({**FULL, "state_machine": "false", "continue_max": "20"}, _folder(tmp_path_factory))


@pytest.fixture(scope="session")
def managed(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    return synthesise(
        {
            **FULL,
            "capacity_provider": "arn:aws:lambda:us-east-1:123456789012:capacity-provider:spark",
            "memory_mb": "32768",
            "network": "none",
            "open_write_alarm_minutes": "100",
            "provisioned_concurrency": "",
            "queue_age_alarm_minutes": "600",
            "reserved_concurrency": "",
            "state_machine": "false",
            "timeout_s": "5400",
        },
        _folder(tmp_path_factory),
    )


@pytest.fixture(scope="session")
def microvm(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    return synthesise(
        {
            **FULL,
            "microvm_timeout_s": "14400",
            "network": "none",
            "open_write_alarm_minutes": "250",
        },
        _folder(tmp_path_factory),
    )


@pytest.fixture(scope="session")
def durable(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    return synthesise(
        {
            **FULL,
            "durable": "3d",
            "checkpoint_days": "32",
            "queue": "false",
            "state_machine": "false",
            "retry_attempts": "0",
            "gradual_deployment": "",
        },
        _folder(tmp_path_factory),
    )


def _folder(factory: pytest.TempPathFactory) -> Path:
    return factory.mktemp("cdk")
