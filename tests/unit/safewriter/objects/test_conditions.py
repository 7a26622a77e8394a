"""Every server but AWS's own is asked once whether it keeps the conditions of writes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config
from botocore.stub import Stubber

from safewriter.errors import UnsupportedError
from safewriter.objects import s3 as objects
from safewriter.objects.conditions import other_server
from safewriter.objects.s3 import S3ObjectStore
from soal.testing.s3 import EmbeddedS3, Match, Refuse, Reply, Request, Rule
from tests.support.network_faults import LoseReply

if TYPE_CHECKING:
    from collections.abc import Iterator

PUT = Match(operations={"PutObject"})
HEADERS = {"If-None-Match": "HTTP_IF_NONE_MATCH", "If-Match": "HTTP_IF_MATCH"}


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedS3]:
    monkeypatch.setattr(objects, "_KEEPING", set())
    with EmbeddedS3(buckets=["bucket"]) as server:
        yield server


@pytest.fixture
def store(s3: EmbeddedS3) -> S3ObjectStore:
    made = S3ObjectStore(s3.client(), "bucket", "p", sleep=lambda _: None)
    made.put("k", b"1")
    s3.wire.clear_trace()
    return made


@pytest.mark.parametrize(
    ("endpoint", "is_probed"),
    [
        ("https://s3.eu-central-1.amazonaws.com", False),
        ("https://bucket.vpce-1a2b.s3.eu-west-1.vpce.amazonaws.com", False),
        ("https://s3.cn-north-1.amazonaws.com.cn", False),
        ("https://dynamodb.us-east-1.api.aws", False),
        ("https://s3-us-west-2.amazonaws.com", False),
        ("https://s3.dualstack.eu-central-1.amazonaws.com", False),
        ("https://s3express-use1-az4.us-east-1.amazonaws.com", False),
        ("https://vpce-1-2.dynamodb.us-gov-west-1.vpce.amazonaws.com", False),
        ("https://123456789012.ddb.eu-west-1.amazonaws.com", False),
        ("http://127.0.0.1:9000", True),
        ("http://s3-minio-1.elb.eu-west-1.amazonaws.com:9000", True),
        ("http://s3.eu-west-1.elb.amazonaws.com", True),
        ("http://ec2-1-2-3-4.eu-west-1.compute.amazonaws.com:9000", True),
        ("https://abc.execute-api.eu-west-1.amazonaws.com", True),
        ("https://s3.amazonaws.com.example.org", True),
        ("https://notamazonaws.com", True),
    ],
)
def test_any_server_but_amazon_s_own_is_probed(endpoint: str, *, is_probed: bool) -> None:
    """It does not matter where the endpoint was set: the client's own endpoint decides."""
    assert other_server(endpoint) == (endpoint if is_probed else "")


@pytest.mark.slow
def test_a_server_that_keeps_them_is_asked_once(s3: EmbeddedS3, store: S3ObjectStore) -> None:
    """By two PUTs that it refuses; the object stays as it is, and the next write asks no more."""
    before = store.get("k")
    for _ in range(2):
        store.check_conditions("k", b"1")

    asked = [(one.condition or "").partition(":")[0] for one in s3.trace() if one.operation == "PutObject"]
    assert asked == ["If-None-Match", "If-Match"]
    after = store.get("k")
    assert (before and (before.body, before.last_modified)) == (after and (after.body, after.last_modified))


@pytest.mark.slow
@pytest.mark.parametrize("header", HEADERS)
def test_a_server_that_ignores_one_is_refused(s3: EmbeddedS3, store: S3ObjectStore, header: str) -> None:
    """Each time, by its name; what it has put over the object is the object itself."""

    def ignoring(request: Request) -> Reply:
        request.environ.pop(HEADERS[header], None)
        return request.apply()

    s3.wire.add(Rule(PUT, ignoring, times=None))
    said = re.compile(rf"nothing was written: {s3.endpoint} ignores .* in spite of {header},")
    for _ in range(2):
        with pytest.raises(UnsupportedError, match=said):
            store.check_conditions("k", b"1")
    found = store.get("k")
    assert found is not None
    assert found.body == b"1"


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Refuse(503), Refuse(409), LoseReply(None)], ids=["503", "409", "lost"])
def test_a_server_that_does_not_answer_is_asked_again(
    s3: EmbeddedS3, store: S3ObjectStore, fault: Refuse | LoseReply
) -> None:
    """Only an answer says something about it."""
    s3.wire.add(Rule(PUT, fault))
    store.check_conditions("k", b"1")
    assert sum(one.operation == "PutObject" for one in s3.trace()) == 3


def test_aws_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without another endpoint no request is sent."""
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    client = boto3.client("s3", config=Config(retries={"total_max_attempts": 1}))
    with Stubber(client):  # which refuses each request
        S3ObjectStore(client, "bucket").check_conditions("k", b"1")
