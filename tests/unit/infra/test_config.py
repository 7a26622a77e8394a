from __future__ import annotations

import re
from pathlib import Path

import pytest

from infra.config import Config, ConfigError
from infra.places import BucketPrefix
from tests.support.cloud import IMAGE

ROOT = Path(__file__).parents[3]


def test_nothing_has_to_be_set() -> None:
    """Every key has a default, and the defaults go together."""
    config = Config.from_context({})

    assert config.image_uri is None
    assert (config.memory_mb, config.timeout_s, config.retry_attempts, config.continue_max) == (3008, 900, 0, 0)


def test_values_of_the_command_line_are_texts() -> None:
    """Numbers, truth values, lists and mappings are read from text, as `cdk -c key=value` gives them."""
    config = Config.from_context(
        {
            "timeout_s": "300",
            "kms": "true",
            "data": "s3://lake/tables/, warehouse",
            "environment": '{"TABLE": "t"}',
            "image_uri": IMAGE,
            "log_level": "",
        }
    )

    assert config.timeout_s == 300
    assert config.kms is True
    assert config.data == (BucketPrefix("lake", "tables"), BucketPrefix("warehouse"))
    assert config.environment == {"TABLE": "t"}
    assert config.image_uri is not None
    assert config.image_uri.repository == "soal"
    assert config.log_level == "INFO"


def test_values_of_cdk_json_have_types() -> None:
    """The same keys in cdk.json may be JSON numbers, truth values and lists."""
    config = Config.from_context({"timeout_s": 300, "queue": True, "data": ["lake/tables"], "environment": {"A": "b"}})

    assert (config.timeout_s, config.queue, config.data) == (300, True, (BucketPrefix("lake", "tables"),))


def test_keys_of_the_cdk_itself_are_not_ours() -> None:
    """Feature flags and what the CDK has looked up are left alone."""
    assert Config.from_context({"@aws-cdk/core:x": True, "aws:cdk:enable-path-metadata": True}) == Config()


@pytest.mark.parametrize(
    ("context", "key", "remedy"),
    [
        ({"timout_s": "60"}, "timout_s", "did you mean timeout_s?"),
        ({"zzz": "60"}, "zzz", "the keys are stack_name, "),
        ({"timeout_s": "901"}, "timeout_s", "less than or equal to 900"),
        ({"timeout_s": "soon"}, "timeout_s", "integer"),
        ({"memory_mb": "512"}, "memory_mb", "greater than or equal to 1024"),
        ({"architecture": "arm"}, "architecture", "'x86_64' or 'arm64'"),
        ({"image_uri": "soal:latest"}, "image_uri", "private ECR repository"),
        ({"image_uri": IMAGE.partition("@")[0]}, "image_uri", "private ECR repository"),
        ({"data": "s3://lake/*"}, "data", "wildcard"),
        ({"data": "Lake"}, "data", "no name of a bucket"),
        ({"scripts": "b"}, "scripts", "no name of a bucket"),
        ({"checkpoint_days": "14"}, "checkpoint_days", "greater than or equal to 15"),
        ({"log_retention_days": "31"}, "log_retention_days", "30, 60"),
        ({"environment": "A=b"}, "environment", "must be a JSON object"),
        ({"environment": {"AWS_REGION": "x"}}, "environment", "AWS_REGION belongs to"),
        ({"environment": {"SW_CHECKPOINT_BUCKET": "x"}}, "environment", "belongs to"),
        ({"environment": {"a b": "x"}}, "environment", "no name of a variable"),
        ({"entry_point": "s3://b/job.py"}, "entry_point", "must match"),
        ({"entry_point": "job.sh"}, "entry_point", "must match"),
        ({"schedule": "daily", "entry_point": "job.py"}, "schedule", "rate(…) or cron(…)"),
        ({"schedule": "rate(1 day)"}, "schedule", "set entry_point"),
        ({"s3_trigger": "raw"}, "s3_trigger", "set entry_point"),
        ({"s3_trigger": "lake/in", "data": "lake", "entry_point": "job.py"}, "s3_trigger", "would start themselves"),
        ({"s3_trigger": "lake", "data": "lake/out", "entry_point": "job.py"}, "s3_trigger", "would start themselves"),
        ({"conditional_commits": "true"}, "conditional_commits", "set lake_bucket=true"),
        ({"lake_formation": "true"}, "lake_formation", "not supported"),
        ({"scripts": "lake/jobs", "data": "lake"}, "scripts", "could replace the script of the next"),
        ({"scripts": "lake", "data": "raw, lake/tables"}, "scripts", "could replace the script of the next"),
        ({"scripts": "lake/a", "data": "lake/a"}, "scripts", "keep scripts apart"),
        ({"read_only_data": "lake/raw", "data": "lake"}, "read_only_data", "take it out of data"),
        ({"read_only_data": "lake/a", "data": "lake/a"}, "read_only_data", "take it out of data"),
        ({"data": "soal-checkpointsbucket6ba0c50d-x1"}, "data", "a bucket of the stack's own"),
        ({"data": "lake, soal-scriptsbucketc04f7688-x1/jobs"}, "data", "a bucket of the stack's own"),
        ({"read_only_data": "soal-checkpointsbucket6ba0c50d-x1"}, "read_only_data", "a bucket of the stack's own"),
        ({"scripts": "soal-checkpointsbucket6ba0c50d-x1/s"}, "scripts", "a bucket of the stack's own"),
        (
            {"gradual_deployment": "canary_10_percent_5_minutes", "errors": "return"},
            "gradual_deployment",
            "no failed run would take it back",
        ),
        ({"gradual_deployment": "canary"}, "gradual_deployment", "canary_10_percent_5_minutes"),
        ({"network": "existing"}, "network", "needs vpc_id, subnet_ids, availability_zones, security_group_ids too"),
        ({"vpc_id": "vpc-1"}, "vpc_id", "network=existing only"),
        (
            {
                "network": "existing",
                "vpc_id": "vpc-1",
                "subnet_ids": "subnet-1,subnet-2",
                "availability_zones": "eu-west-1a",
                "security_group_ids": "sg-1",
            },
            "availability_zones",
            "one for each of subnet_ids",
        ),
        ({"alarm_email": "ops"}, "alarm_email", "must match"),
        ({"kms": "maybe"}, "kms", "boolean"),
    ],
)
def test_a_bad_value_is_refused_with_its_remedy(context: dict[str, object], key: str, remedy: str) -> None:
    """The error names the key, what was found there, and what to write instead."""
    with pytest.raises(ConfigError) as caught:
        Config.from_context(context)

    assert caught.value.key == key
    assert str(caught.value).startswith(f"context {key}=")
    assert remedy in caught.value.remedy


def test_a_trigger_beside_the_data_is_allowed() -> None:
    """Two prefixes of one bucket do not overlap if neither begins with the other, slash by slash."""
    context = {"s3_trigger": "lake/in", "data": "lake/in-tables", "entry_point": "job.py"}

    assert Config.from_context(context).s3_trigger == BucketPrefix("lake", "in")


@pytest.mark.parametrize(
    "context",
    [
        {"scripts": "lake/scripts", "data": "lake/tables"},
        {"scripts": "lake/a", "data": "lake/ab"},
        {"read_only_data": "lake", "data": "lake/tables"},
        {"scripts": "lake/scripts", "read_only_data": "lake"},
        {"data": "other-checkpointsbucket6ba0c50d-x1"},
        {"scripts": "soal-scriptsbucketc04f7688-x1"},
    ],
)
def test_places_that_no_job_confuses_go_together(context: dict[str, object]) -> None:
    """Beside each other, a table inside of what is only read, scripts that can only be read, another stack's bucket."""
    assert Config.from_context(context).stack_name == "Soal"


def test_the_readme_tells_every_key() -> None:
    """No key is a secret, and none is told that does not exist."""
    section = (ROOT / "README.md").read_text().partition("## Deploy")[2].partition("\n## ")[0]
    rows = [row.split("|") for row in section.splitlines() if row.startswith("| `")]

    def names(text: str) -> set[str]:
        return set(re.findall(r"`([a-z0-9_]+)`", text))

    told = {key for row in rows for key in names(row[1])}
    (network,) = (names(row[3]) - {"own", "existing"} for row in rows if "`network`" in row[1])

    assert told | network == Config.model_fields.keys()
