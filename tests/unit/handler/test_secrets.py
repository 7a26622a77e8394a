"""On moto's Secrets Manager: reading, caching, and errors."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from aws_lambda_powertools.utilities.parameters import base
from botocore.stub import Stubber
from moto import mock_aws
from moto.server import ThreadedMotoServer

from handler import secrets
from handler.input_errors import InputError
from handler.redaction.redact import Redactor
from handler.secrets import SecretReference, Secrets, SecretUnavailableError, parse_references, read_secrets
from handler.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:lake/db-AbCdEf"


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.delenv("AWS_ENDPOINT_URL")  # moto answers only at Amazon's own addresses
    secrets._provider.cache_clear()
    with mock_aws():
        yield boto3.client("secretsmanager", region_name="eu-west-1")
    secrets._provider.cache_clear()


def made(manager: Any, value: str, name: str = "lake/db") -> str:
    return str(manager.create_secret(Name=name, SecretString=value)["ARN"])


def read(**references: str) -> Secrets:
    return read_secrets(parse_references(json.dumps(references)))


def test_a_secret_is_read_whole_or_by_key(manager: Any) -> None:
    """It is read in its ARN's region, whatever the function's own; a number under a key is read as text."""
    whole = made(manager, "open sesame", "whole")
    keyed = made(manager, '{"username": "soal", "password": "p@ss word", "port": 5432}', "keyed")

    found = read(API_PASS=whole, PGPASSWORD=f"{keyed}#password", PGPORT=f"{keyed}#port")

    assert found.values == {"API_PASS": "open sesame", "PGPASSWORD": "p@ss word", "PGPORT": "5432"}


def test_names_say_what_becomes_of_a_value(manager: Any) -> None:
    """Spark settings begin with spark.; a settler also gets the variables of catalogs."""
    arn = made(manager, "open sesame")
    names = ("spark.sql.catalog.lake.credential", "PYICEBERG_CATALOG__LAKE__CREDENTIAL", "PGPASSWORD", "API_PASS")

    found = read(**dict.fromkeys(names, arn))

    assert found.spark_settings.keys() == {names[0]}
    assert found.variables.keys() == set(names[1:])
    assert found.of_catalogs.keys() == set(names[1:3])
    assert "sesame" not in repr(found)


def test_a_warm_function_asks_once_and_learns_of_a_rotation(manager: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read value is cached for five minutes by the clock, and not longer."""
    arn = made(manager, "first value")
    assert read(API_PASS=arn).values == {"API_PASS": "first value"}
    manager.put_secret_value(SecretId=arn, SecretString="second value")
    assert read(API_PASS=arn).values == {"API_PASS": "first value"}

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(seconds=301)

    monkeypatch.setattr(base, "datetime", Later)

    assert read(API_PASS=arn).values == {"API_PASS": "second value"}


def test_a_secret_that_is_not_there_is_a_usage_error(manager: Any) -> None:
    """The error names the reference and the permission; redaction leaves both readable."""
    with pytest.raises(InputError) as caught:
        read(PGPASSWORD=f"{ARN}#password")

    assert caught.value.field == "SOAL_SECRETS"
    shown = Redactor()(str(caught.value))
    assert shown == str(caught.value)
    for part in (ARN, "ResourceNotFoundException", "secretsmanager:GetSecretValue", "secret_kms_key_arns"):
        assert part in shown


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("AccessDeniedException", 400, InputError),
        ("DecryptionFailure", 400, InputError),
        ("InvalidRequestException", 400, InputError),  # it is scheduled for deletion
        ("ThrottlingException", 400, SecretUnavailableError),
        ("InternalServiceError", 500, SecretUnavailableError),
        ("Whatever", 503, SecretUnavailableError),
    ],
)
def test_errors_say_whether_a_later_try_can_work(manager: Any, code: str, status: int, kind: type[Exception]) -> None:
    """Errors of the service may pass; other errors need a change by the owner."""
    provider = secrets._provider("eu-west-1", os.environ.get("AWS_SESSION_TOKEN"))
    with Stubber(provider.client) as stub:
        stub.add_client_error("get_secret_value", code, "no", http_status_code=status)
        with pytest.raises(kind, match=ARN):
            read(PGPASSWORD=ARN)


def test_another_secrets_manager_is_found_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is for functions on this machine: all AWS clients read AWS_ENDPOINT_URL_SECRETS_MANAGER."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        url = "http://{}:{}".format(*server.get_host_and_port())
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", url)
        secrets._provider.cache_clear()
        arn = made(boto3.client("secretsmanager", region_name="eu-west-1"), "open sesame")

        assert read(API_PASS=arn).values == {"API_PASS": "open sesame"}
    finally:
        server.stop()
        secrets._provider.cache_clear()


def test_no_answer_is_worth_a_later_try() -> None:
    """On a port without a listener the client gives up in bounded time."""
    secrets._provider.cache_clear()
    with pytest.raises(SecretUnavailableError, match=r"127\.0\.0\.1"):
        read(PGPASSWORD=ARN)


@pytest.mark.parametrize(
    ("value", "key", "problem"),
    [
        ("no json", "#password", "no JSON object with a text or number under 'password'"),
        ('["password"]', "#password", "no JSON object"),
        ('{"other": "x"}', "#password", "no JSON object"),
        ('{"password": {"a": 1}}', "#password", "no JSON object"),
        ('{"password": true}', "#password", "no JSON object"),
        ('{"password": ""}', "#password", "empty"),
        ("a\0b", "", "NUL"),
    ],
)
def test_a_value_that_cannot_be_used_is_a_usage_error_without_it(
    manager: Any, value: str, key: str, problem: str
) -> None:
    """The error names the secret and the reason, never the value."""
    arn = made(manager, value)

    with pytest.raises(InputError, match=problem) as caught:
        read(PGPASSWORD=arn + key)

    assert value not in str(caught.value)


def test_a_setting_of_several_lines_is_refused(manager: Any) -> None:
    """A properties file would lose the rest of the value; a variable keeps it."""
    arn = made(manager, "open sesame\n")

    assert read(API_PASS=arn).values == {"API_PASS": "open sesame\n"}
    with pytest.raises(InputError, match="control character"):
        read(**{"spark.sql.catalog.lake.credential": arn})


@pytest.mark.parametrize("value", ["${env.AWS_SECRET_ACCESS_KEY}", "env:HOME", "/etc/passwd", "x" * 5000])
def test_a_setting_that_no_job_may_have_is_refused_without_its_value(manager: Any, value: str) -> None:
    """The secret's writer may not be the function's owner."""
    arn = made(manager, value)

    with pytest.raises(InputError, match="is no value for a setting") as caught:
        read(**{"spark.sql.catalog.lake.uri": arn})
    assert value not in str(caught.value)


def test_the_keys_of_one_bucket_may_be_secrets(manager: Any) -> None:
    """They lead to another account; keys for all buckets would separate Spark from the guard."""
    arn = made(manager, "sesame")

    assert read(**{"spark.hadoop.fs.s3a.bucket.other.of.theirs.secret.key": arn}).spark_settings


def test_a_binary_secret_is_a_usage_error(manager: Any) -> None:
    """It cannot be a variable."""
    arn = manager.create_secret(Name="binary", SecretBinary=b"\x00\x01")["ARN"]

    with pytest.raises(InputError, match="store it as text"):
        read(PGPASSWORD=arn)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "[]",
        '{"PGPASSWORD": "hunter22"}',
        '{"PGPASSWORD": 5}',
        '{"PGPASSWORD": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:lake"}',
        json.dumps({"AWS_REGION": ARN}),
        json.dumps({"SOAL_HOME": ARN}),
        json.dumps({"PYTHONPATH": ARN}),
        json.dumps({"P": ARN}),
        json.dumps({"JDK_JAVA_OPTIONS": ARN}),
        json.dumps({"spark.jars": ARN}),
        json.dumps({"spark.delta.logStore.s3a.impl": ARN}),
        json.dumps({"spark.hadoop.fs.s3a.secret.key": ARN}),
        json.dumps({"a b": ARN}),
        json.dumps({"PGPASSWORD": f"{ARN}#"}),
    ],
)
def test_a_bad_list_of_references_is_refused_by_the_variables_name(text: str) -> None:
    """It is refused before anything starts, without the value, which may be a misplaced secret."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - of each kind
        parse_references(text)
    assert "hunter22" not in str(caught.value)

    if text:
        with pytest.raises(InputError) as refused:
            read_settings({"SW_CHECKPOINT_BUCKET": "bucket", "SOAL_SECRETS": text})
        assert refused.value.field == "SOAL_SECRETS"


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov", "aws-iso-b"])
def test_references_are_of_any_partition(partition: str) -> None:
    """ARNs of China and of the closed regions are ARNs as well."""
    reference = SecretReference.parse(
        f"arn:{partition}:secretsmanager:us-iso-east-1:123456789012:secret:a/b+c=d-AbCdEf#k"
    )

    assert (reference.region, reference.key) == ("us-iso-east-1", "k")
    assert str(reference).endswith("-AbCdEf#k")
