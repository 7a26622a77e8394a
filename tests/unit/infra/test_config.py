"""The stack's settings from CDK context: types, defaults, contradictions, secrets in clear, errors with a remedy."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from infra.config import Config
from infra.context import read_context
from infra.contradictions import ConfigError, unknown_predecessors
from infra.places import BucketPrefix
from scripts.reference import context_keys
from tests.support.cloud import IMAGE

ROOT = Path(__file__).parents[3]
KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:lake/db-AbCdEf"
NETWORK = {
    "network": "existing",
    "vpc_id": "vpc-01234567",
    "subnet_ids": "subnet-01234567",
    "availability_zones": "eu-west-1a",
    "security_group_ids": "sg-01234567",
}


def test_nothing_has_to_be_set() -> None:
    """Every key has a default, and the defaults are consistent."""
    config = read_context({})

    assert config.image_uri is None
    assert (config.memory_mb, config.timeout_s, config.retry_attempts, config.continue_max) == (3008, 900, 0, 0)


def test_values_of_the_command_line_are_texts() -> None:
    """The settings parse numbers, truth values, lists and mappings from text, as `cdk -c key=value` passes them."""
    config = read_context(
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
    config = read_context({"timeout_s": 300, "queue": True, "data": ["lake/tables"], "environment": {"AB": "c"}})

    assert (config.timeout_s, config.queue, config.data) == (300, True, (BucketPrefix("lake", "tables"),))


def test_keys_of_the_cdk_itself_are_not_ours() -> None:
    """The settings ignore feature flags and the CDK's cached look-ups."""
    assert read_context({"@aws-cdk/core:x": True, "aws:cdk:enable-path-metadata": True}) == Config()


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
        ({"image_variant": "fat"}, "image_variant", "'slim' or 'full'"),
        ({"image_variant": "full", "image_uri": IMAGE}, "image_variant", "leave one out"),
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
        ({"scripts": "team", "s3_trigger": "team/in", "entry_point": "job.py"}, "scripts", "(s3_trigger=team/in)"),
        ({"scripts": "team/in", "s3_trigger": "team", "entry_point": "job.py"}, "scripts", "could be started"),
        ({"scripts": "team/in", "s3_trigger": "team/in", "entry_point": "job.py"}, "scripts", "could be started"),
        ({"scripts": "team", "read_only_data": "raw, team/in"}, "scripts", "(read_only_data=team/in)"),
        ({"scripts": "team/in", "read_only_data": "team/in"}, "scripts", "keep scripts apart"),
        ({"read_only_data": "lake/raw", "data": "lake"}, "read_only_data", "take it out of data"),
        ({"read_only_data": "lake/a", "data": "lake/a"}, "read_only_data", "take it out of data"),
        ({"data": "soal-checkpointsbucket6ba0c50d-x1"}, "data", "a bucket of the stack's own"),
        ({"data": "lake, soal-scriptsbucketc04f7688-x1/jobs"}, "data", "a bucket of the stack's own"),
        ({"read_only_data": "soal-checkpointsbucket6ba0c50d-x1"}, "read_only_data", "a bucket of the stack's own"),
        ({"scripts": "soal-checkpointsbucket6ba0c50d-x1/s"}, "scripts", "a bucket of the stack's own"),
        ({"scripts": "soal-lakebucketb1d32e10-x1/s", "lake_bucket": True}, "scripts", "jobs write there"),
        (
            {"s3_trigger": "soal-lakebucketb1d32e10-x1/in", "lake_bucket": True, "entry_point": "job.py"},
            "s3_trigger",
            "jobs write there",
        ),
        (
            {"gradual_deployment": "canary_10_percent_5_minutes", "errors": "return"},
            "gradual_deployment",
            "no failed run would take it back",
        ),
        ({"gradual_deployment": "canary"}, "gradual_deployment", "canary_10_percent_5_minutes"),
        ({"network": "existing"}, "network", "needs vpc_id, subnet_ids, availability_zones, security_group_ids too"),
        ({"vpc_id": "vpc-01234567"}, "vpc_id", "network=existing only"),
        (
            {
                "network": "existing",
                "vpc_id": "vpc-01234567",
                "subnet_ids": "subnet-01234567,subnet-89abcdef",
                "availability_zones": "eu-west-1a",
                "security_group_ids": "sg-01234567",
            },
            "availability_zones",
            "one for each of subnet_ids",
        ),
        ({"alarm_email": "ops"}, "alarm_email", "must match"),
        ({"stack_name": "my stack"}, "stack_name", "must match"),
        ({"data": "a..b"}, "data", "no name of a bucket"),
        ({"data": "192.168.1.1"}, "data", "no name of a bucket"),
        ({"data": "tables--x-s3"}, "data", "no name of a bucket"),
        ({"environment": {"A": "x"}}, "environment", "two at least"),
        ({"environment": {"1A": "x"}}, "environment", "no name of a variable"),
        ({"environment": {"TMP": "x"}}, "environment", "belongs to"),
        ({"environment": {"TABLE": "a\0b"}}, "environment", "NUL"),
        ({"environment": {"TABLE": "x" * 4000}}, "environment", "the largest is TABLE"),
        ({"conf": {"spark.x": "\u00e9" * 2000}}, "environment", "the largest is SOAL_CONF"),
        ({"conf": {"x": "y"}}, "conf", "begin with 'spark.'"),
        ({"conf": {"spark.x": "a\nb"}}, "conf", "control character"),
        ({"conf": {"spark.jars": "x.jar"}}, "conf", "may not be set by a job"),
        ({"conf": {"spark.x": "${env.HOME}"}}, "conf", "variables of the function"),
        ({"conf": {"spark.x": "env:HOME"}}, "conf", "variables of the function"),
        ({"secrets": {"spark.master": SECRET}}, "secrets", "spark.master may not be set"),
        ({"environment": {"JDK_JAVA_OPTIONS": "-ea"}}, "environment", "belongs to"),
        ({"entry_point": "json.py"}, "entry_point", "would hide json"),
        ({"entry_point": "jobs/safewriter.py"}, "entry_point", "would hide safewriter"),
        ({"entry_point": "x/../y.py"}, "entry_point", "name the key itself"),
        ({"entry_point": "x//y.py"}, "entry_point", "name the key itself"),
        ({"entry_point": "x" * 510 + ".py"}, "entry_point", "512"),
        ({"queue": "true", "queue_age_alarm_minutes": "90"}, "queue_age_alarm_minutes", "returns after 90 minutes"),
        ({"conf_allow": "hadoop.x"}, "conf_allow", "must match"),
        ({"turns": {"t": {"A": {}}}}, "turns", "t.A has no script"),
        (
            {
                "network": "own",
                "secrets": {"AB": SECRET, "CD": SECRET.replace("us-east-1", "eu-west-1")},
            },
            "secrets",
            "of eu-west-1 and us-east-1, and network=own reaches",
        ),
        *(
            ({"turns": {"t": {"A": {"script": "a.py", **keys}}}}, "turns", remedy)
            for keys, remedy in (
                ({"lease.seconds": "5"}, "not between 25 and 900"),
                ({"foo": "x"}, "is not known"),
                ({"backend": "s3://b"}, "SW_LOCKS is the lock service"),
                ({"predecessor": "A"}, "is the job itself"),
                ({"mode": "x"}, "not one of completed, strict"),
                ({"script": "a"}, "does not name a Python script"),
                ({"script": "pyspark.py"}, "would hide pyspark"),
            )
        ),
        ({"turns": {"t t": {"A": {"script": "a.py"}}}}, "turns", "is not a name"),
        ({"turns": {"t": {"A/B": {"script": "a.py"}}}}, "turns", "is not a name"),
        ({"turns": {"t": {f"J{one}": {"script": "a.py"} for one in range(51)}}}, "turns", "50 at most"),
        (
            {
                "turns": {"t": {"A": {"script": "a.py"}, "B": {"script": "a.py"}}},
                "entry_point": "a.py",
                "schedule": "rate(1 day)",
            },
            "turns",
            "a.py is A at t and B at t, and events of triggers name no turn",
        ),
        ({"conf": {"spark.eventLog.dir": "file:///var/x"}}, "conf", "outside /tmp"),
        ({"conf": {"spark.driver.memory": "lots"}}, "conf", "must be a size"),
        ({"conf": {"spark.driver.memory": "20g"}}, "conf", "between 512m and 2496m of the function's 3008 MB"),
        ({"conf": {"spark.driver.cores": "x"}}, "conf", "whole number"),
        ({"conf": {"spark.a b": "y"}}, "conf", "not the name of a Spark setting"),
        ({"audit_log": "maybe"}, "audit_log", "boolean"),
        ({"jit": "C1"}, "jit", "'auto', 'c1' or 'full'"),
        ({"glue_databases": "*"}, "glue_databases", "no name of a Glue database"),
        ({"glue_databases": "Sales"}, "glue_databases", "small letters"),
        ({"glue_databases": "a/b"}, "glue_databases", "no name of a Glue database"),
        ({"data_kms_key_arns": "*"}, "data_kms_key_arns", "not the ARN of a key"),
        ({"data_kms_key_arns": f"{KEY}*"}, "data_kms_key_arns", "not the ARN of a key"),
        ({"data_kms_key_arns": "alias/lake"}, "data_kms_key_arns", "aws kms describe-key --key-id alias/lake"),
        ({"data_kms_key_arns": KEY.replace("key/", "alias/")}, "data_kms_key_arns", "describe-key"),
        ({"secret_kms_key_arns": KEY}, "secret_kms_key_arns", "set secrets"),
        ({"queue": "true", "errors": "return"}, "queue", "errors=return"),
        ({"retry_attempts": "1", "errors": "return"}, "retry_attempts", "errors=return"),
        ({"state_machine": "true", "errors": "return"}, "state_machine", "errors=return"),
        ({"redrive_attempts": "1", "errors": "return"}, "redrive_attempts", "errors=return"),
        ({"continue_max": "1", "errors": "return"}, "continue_max", "errors=return"),
        (
            {"schedule": "rate(1 day)", "entry_point": "job.py", "errors": "return"},
            "schedule",
            "would vanish",
        ),
        ({"s3_trigger": "raw", "entry_point": "job.py", "errors": "return"}, "s3_trigger", "would vanish"),
        ({"queue": "true", "reserved_concurrency": "1"}, "reserved_concurrency", "queue_concurrency=2"),
        (
            {"provisioned_concurrency": "6", "reserved_concurrency": "5"},
            "provisioned_concurrency",
            "give it at most as many",
        ),
        *(
            ({"durable": value}, "durable", "hours or days, as 12h or 3d")
            for value in ("12", "0h", "366d", "90m", "1d\n")
        ),
        ({"durable": "15d", "checkpoint_days": "29"}, "checkpoint_days", "give it more than 29"),
        ({"redrive_attempts": "1", "checkpoint_days": "28"}, "checkpoint_days", "give it more than 28"),
        ({"redrive_attempts": "1", "durable": "2d"}, "checkpoint_days", "give it more than 30"),
        ({"durable": "16d", "checkpoint_days": "60"}, "durable", "1500 attempts of an execution, here of 900 s"),
        ({"durable": "1d", "errors": "return"}, "durable", "errors=return"),
        (
            {"durable": "1d", "gradual_deployment": "canary_10_percent_5_minutes"},
            "gradual_deployment",
            "would see none",
        ),
        ({"durable": "1d", "queue": "true"}, "queue", "15 minutes at most"),
        (
            {"durable": "1d", "state_machine": "true"},
            "state_machine",
            "Functions waits for the whole execution, 15 min",
        ),
        ({"state_machine": "true", "continue_max": "1"}, "continue_max", "leave out state_machine, or this"),
        ({"durable": "1d", "continue_max": "2"}, "continue_max", "makes its attempts itself"),
        ({"durable": "1d", "retry_attempts": "1"}, "retry_attempts", "makes its attempts itself"),
        ({"provisioned_concurrency": "1", "reuse": "off"}, "provisioned_concurrency", "leave reuse out, or this"),
        ({**NETWORK, "vpc_id": "vpc-1"}, "vpc_id", "8 or 17 hexadecimal digits"),
        ({**NETWORK, "subnet_ids": "subnet-x"}, "subnet_ids", "8 or 17 hexadecimal digits"),
        ({**NETWORK, "availability_zones": "eu-west-1"}, "availability_zones", "no availability zone"),
        ({**NETWORK, "security_group_ids": ["sg-01234567"] * 2}, "security_group_ids", "twice"),
        ({**NETWORK, "security_group_ids": [f"sg-0123456{n}" for n in range(6)]}, "security_group_ids", "at most 5"),
        ({"kms": "maybe"}, "kms", "boolean"),
    ],
)
def test_a_bad_value_is_refused_with_its_remedy(context: dict[str, object], key: str, remedy: str) -> None:
    """The error names the key, the value found, and the value to write instead."""
    with pytest.raises(ConfigError) as caught:
        read_context(context)

    assert caught.value.key == key
    assert str(caught.value).startswith(f"context {key}=")
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    ("key", "name", "value"),
    [
        ("environment", "PGPASSWORD", "open sesame"),
        ("environment", "PYICEBERG_CATALOG__LAKE__CREDENTIAL", "id:open sesame"),
        ("environment", "pyiceberg_catalog__lake__token", "open sesame"),
        ("environment", "PYICEBERG_CATALOG__LAKE__S3__SECRET_ACCESS_KEY", "open sesame"),
        (
            "environment",
            "PYICEBERG_CATALOG__LAKE__URI",
            "postgresql+psycopg2://soal:sesame@db/lake",
        ),
        ("environment", "PYICEBERG_CATALOG__LAKE__URI", "jdbc:postgresql://db/lake?user=soal&password=sesame"),
        ("conf", "spark.sql.catalog.lake.credential", "id:sesame"),
        ("conf", "spark.sql.catalog.lake.jdbc.password", "sesame"),
        ("conf", "spark.sql.catalog.lake.uri", "jdbc:postgresql://db/lake?password=sesame"),
        ("conf", "spark.hadoop.fs.s3a.bucket.other.secret.key", "sesame"),
        ("conf", "spark.sql.catalog.lake.header.X-Auth", "sesame"),
        ("conf", "spark.sql.catalog.lake.jdbc.pass", "sesame"),
        ("conf", "spark.sql.catalog.lake.s3.sse.key", "open-sesame"),
        ("conf", "spark.sql.catalog.lake.uri", "jdbc:mysql://(host=h,password=sesame)/db"),
        ("conf", "spark.hadoop.fs.s3a.encryption.key", "open-sesame"),
        ("conf", "spark.hadoop.fs.azure.account.key.ACC.dfs.core.windows.net", "sesame"),
        ("environment", "PYICEBERG_CATALOG__LAKE__AUTH", '{"basic":{"password":"sesame"}}'),
        ("environment", "PYICEBERG_CATALOG__LAKE__HEADER__X_AUTH", "sesame"),
        ("environment", "PYICEBERG_CATALOG__LAKE__URI", "postgresql://db/lake?sslpassword=sesame"),
        ("environment", "API_TOKEN", "sesame"),
        ("environment", "DATABASE_URL", "postgresql://soal:sesame@db/lake"),
        ("environment", "DATABASE_URL", "postgres://soal:open/sesame@db/lake"),
        ("environment", "OPTIONS", "-Xmx2g -Ddb.password=sesame"),
        ("environment", "CONFIG", '{"user": "soal", "password": "sesame"}'),
        ("environment", "JAAS", 'PlainLoginModule required username="soal" password="sesame";'),
        ("environment", "CLIENT", "AKIASESAMESESAMESESA"),
        ("environment", "CLIENT", f"ghp_{'sesame' * 6}"),
        ("environment", "CLIENT", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzZXNhbWUifQ.sesame"),
        ("environment", "CLIENT", "-----BEGIN RSA PRIVATE KEY-----\nsesame\n-----END RSA PRIVATE KEY-----"),
    ],
)
def test_a_secret_in_clear_is_refused_and_not_repeated(key: str, name: str, value: str) -> None:
    """More people can read context, template and function than the secret; the remedy names the reference."""
    with pytest.raises(ConfigError) as caught:
        read_context({key: json.dumps({name: value})})

    assert caught.value.key == key
    assert f'secrets={{"{name}": "ARN of the secret"}}' in caught.value.remedy
    assert "sesame" not in str(caught.value)


def test_what_is_no_secret_is_a_variable() -> None:
    """Addresses, users and paths to a token are not secrets."""
    variables = {
        "PGUSER": "soal",
        "PYICEBERG_CATALOG__LAKE__URI": "postgresql+psycopg2://soal@db:5432/lake",
        "PYICEBERG_CATALOG__LAKE__OAUTH2_SERVER_URI": "https://login.example.org/token",
        "PYICEBERG_CATALOG__LAKE__TOKEN_REFRESH_ENABLED": "true",
        "PGPASSFILE": "/opt/pgpass",
        "INPUT_KEY": "raw/2026/part-0.csv",
        "OPTIONS": "-Xmx2g -Dfile.encoding=UTF-8",
        "COMMIT": "3f786850e387550fdab836ed7e6dc881de23001b",
        "QUERY": "SELECT password FROM users",
    }

    assert read_context({"environment": json.dumps(variables)}).environment == variables


@pytest.mark.parametrize(
    ("secrets", "remedy"),
    [
        ({"PGPASSWORD": "hunter22"}, "not the whole ARN"),
        ({"PGPASSWORD": SECRET.removesuffix("-AbCdEf")}, "six characters"),
        ({"PGPASSWORD": f"{SECRET[:-1]}*"}, "not the whole ARN"),
        ({"PGPASSWORD": f"{SECRET}#"}, "not the whole ARN"),
        ({"AWS_SECRET_ACCESS_KEY": SECRET}, "belongs to"),
        ({"X": SECRET}, "no name of a variable"),
        ({"spark sql": SECRET}, "no name of a variable"),
    ],
)
def test_a_reference_is_exact_or_refused(secrets: dict[str, str], remedy: str) -> None:
    """The role's policy names the reference, so it must be complete; the error hides the value, perhaps a secret."""
    with pytest.raises(ConfigError) as caught:
        read_context({"secrets": json.dumps(secrets)})

    assert remedy in caught.value.remedy
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize(("key", "name"), [("environment", "PGUSER"), ("conf", "spark.sql.catalog.lake.jdbc.user")])
def test_a_name_has_one_value(key: str, name: str) -> None:
    """A secret must not also be a plain variable or setting."""
    with pytest.raises(ConfigError, match=f"is in {key}, too"):
        read_context({key: {name: "soal"}, "secrets": {name: SECRET}})


def test_a_trigger_beside_the_data_is_allowed() -> None:
    """Two prefixes of one bucket do not overlap unless one is a parent of the other by whole path segments."""
    context = {"s3_trigger": "lake/in", "data": "lake/in-tables", "entry_point": "job.py"}

    assert read_context(context).s3_trigger == BucketPrefix("lake", "in")


@pytest.mark.parametrize(
    "context",
    [
        {"scripts": "lake/scripts", "data": "lake/tables"},
        {"scripts": "lake/a", "data": "lake/ab"},
        {"read_only_data": "lake", "data": "lake/tables"},
        {"scripts": "lake/scripts", "read_only_data": "lake"},
        {"scripts": "lake/in-scripts", "read_only_data": "lake/in", "s3_trigger": "lake/in", "entry_point": "job.py"},
        {"scripts": "soal-lakebucketb1d32e10-x1"},
        {"data": "other-checkpointsbucket6ba0c50d-x1"},
        {"scripts": "soal-scriptsbucketc04f7688-x1"},
    ],
)
def test_places_that_no_job_confuses_go_together(context: dict[str, object]) -> None:
    """Allowed: separate places, a table in a read-only place, scripts in a read-only place, another stack's bucket."""
    assert read_context(context).stack_name == "Soal"


def test_the_page_of_context_keys_explains_every_key() -> None:
    """The model generates the page: a key without a docstring is an error, and each key has one entry."""
    assert re.findall(r"^`(\w+)`$", context_keys(), re.MULTILINE) == list(Config.model_fields)


def test_a_turn_behind_a_job_that_is_declared_elsewhere_is_no_error() -> None:
    """Another stack or a cluster may take that turn at the same lock service; the app warns."""
    config = read_context({"turns": {"t": {"A": {"script": "a.py", "predecessor": "Z"}}}})

    assert unknown_predecessors(config) == ["t.A waits for Z"]


def test_what_the_function_takes_is_taken() -> None:
    """The function accepts settings in the documented forms, with heap and turns that a script names itself."""
    turns = {"t": {"A": {"script": "a.py"}, "B": {"script": "jobs/b.py", "predecessor": "A", "lease.seconds": "60"}}}
    config = read_context({"turns": turns, "conf": {"spark.driver.memory": "1500m"}, "entry_point": "a.py"})

    assert config.turns == turns
    assert unknown_predecessors(config) == []
