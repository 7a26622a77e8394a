"""A client takes no answer but its service's."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import boto3
import botocore.credentials
import botocore.loaders
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from moto import mock_aws

from safewriter.objects import client
from safewriter.objects.client import ForeignAnswerError, client_of, own_answers, queued_id, read_description
from tests.support.page import page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ONCE = Config(retries={"total_max_attempts": 1})
CALLS = pytest.mark.parametrize(
    ("service", "call", "arguments"),
    [
        ("s3", "delete_object", {"Bucket": "b", "Key": "k"}),
        ("dynamodb", "put_item", {"TableName": "t", "Item": {"lock": {"S": "l"}}}),
        ("lambda", "invoke", {"FunctionName": "f", "InvocationType": "Event"}),
        ("sqs", "list_queues", {}),
        ("sns", "list_topics", {}),
        ("logs", "describe_log_groups", {}),
        ("cloudwatch", "describe_alarms", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)


@pytest.fixture(scope="module")
def proxy() -> Iterator[str]:
    with page() as endpoint:
        yield endpoint


@CALLS
def test_a_page_is_no_answer_of_any_service(proxy: str, service: str, call: str, arguments: Any) -> None:
    """Each protocol of AWS's: the call raises, and the error names the service."""
    made = client_of(service, ONCE, endpoint=proxy)
    with pytest.raises(ForeignAnswerError, match=rf"not from {made.meta.service_model.service_id}: .* a proxy"):
        getattr(made, call)(**arguments)


@mock_aws
def test_an_answer_with_a_request_id_is_the_services(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a client that somebody else has made takes it, however often it was told."""
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    assert "Buckets" in client_of("s3", ONCE).list_buckets()
    assert "QueueUrl" in own_answers(own_answers(boto3.client("sqs"))).create_queue(QueueName="q")


def test_a_description_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process, and in its forks: reading it takes most of a client's time. No credentials are looked for."""
    monkeypatch.setattr(botocore.credentials.CredentialResolver, "load_credentials", lambda _: pytest.fail("looked"))
    read_description("s3")
    monkeypatch.undo()
    monkeypatch.setattr(botocore.loaders.JSONFileLoader, "load_file", lambda *_: pytest.fail("read again"))
    one, other = (client_of("s3", ONCE, endpoint="http://127.0.0.1:1", region="us-east-1") for _ in range(2))
    assert one is not other


def test_clients_look_for_descriptions_where_the_user_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In few folders, however many clients there were: boto3 names its own to the loader of each session."""
    monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
    monkeypatch.setattr(client, "_loader", functools.cache(client._loader.__wrapped__))
    for _ in range(3):
        client_of("s3", ONCE, endpoint="http://127.0.0.1:1", region="us-east-1")
    folders = client._loader(str(tmp_path)).search_paths
    assert str(tmp_path) in folders
    assert len(folders) == len(set(folders))


def test_an_error_keeps_its_status() -> None:
    """An error is nobody's success, so it needs no request id: a load balancer's has none."""
    with page(status=503) as endpoint, pytest.raises(ClientError) as caught:
        client_of("dynamodb", ONCE, endpoint=endpoint).list_tables()
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503


@pytest.mark.parametrize(("status", "request_id"), [(200, "one"), (202, ""), (202, None)])
def test_only_lambdas_own_word_says_that_an_event_is_queued(status: int, request_id: str | None) -> None:
    """Status 202, and a request id."""
    with pytest.raises(ForeignAnswerError):
        queued_id({"StatusCode": status, "ResponseMetadata": {"RequestId": request_id}})
    assert queued_id({"StatusCode": 202, "ResponseMetadata": {"RequestId": "one"}}) == "one"
