"""The emulator's wire traces each request, holds none up for another, and answers 403 or 404 as rights say."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from soal.testing.s3 import EmbeddedS3, Match, Refuse, Reply, Request, Rule
from soal.testing.s3.backend import Moto
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_s3 import S3Client

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=["lake", "private", "named"], unlistable=["named"], hiding=["private"]) as running:
        yield running


def test_the_trace_tells_what_each_request_was(s3: EmbeddedS3) -> None:
    """Operation, key, class, condition, size and status are in the trace, times in order."""
    client = s3.client()
    client.put_object(Bucket="lake", Key="t/day=ä 1/a.parquet", Body=b"12345")
    client.get_object(Bucket="lake", Key="t/day=ä 1/a.parquet")
    client.put_object(Bucket="lake", Key="t/_delta_log/00000000000000000000.json", Body=b"{}", IfNoneMatch="*")
    first, second, third = s3.trace()
    assert (first.operation, first.bucket, first.key, first.key_class) == (
        "PutObject",
        "lake",
        "t/day=ä 1/a.parquet",
        "data",
    )
    assert (first.body_bytes, first.status, first.applied) == (5, 200, 200)
    assert second.operation == "GetObject"
    assert third.condition == "If-None-Match: *"
    assert first.started_ns <= first.ended_ns <= second.started_ns


def test_the_trace_tells_what_was_not_applied(s3: EmbeddedS3) -> None:
    """A refused request has a status for the client, and none from S3."""
    s3.wire.add(Rule(Match(), Refuse(503)))
    with pytest.raises(ClientError):
        s3.client().put_object(Bucket="lake", Key="k", Body=b"")
    (exchange,) = s3.trace()
    assert (exchange.status, exchange.applied) == (503, None)


def test_one_of_many_conditional_creations_wins(s3: EmbeddedS3) -> None:
    """If many clients create the same key at once, one succeeds, and the object has its body."""
    clients = [s3.client() for _ in range(8)]

    def create(number: int) -> int:
        try:
            answer = clients[number % 8].put_object(
                Bucket="lake", Key="slot", Body=str(number).encode(), IfNoneMatch="*"
            )
        except ClientError as error:
            return error.response["ResponseMetadata"]["HTTPStatusCode"]
        return answer["ResponseMetadata"]["HTTPStatusCode"]

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(create, range(40)))
    assert sorted(statuses) == [200] + [412] * 39
    winner = str(statuses.index(200)).encode()
    assert clients[0].get_object(Bucket="lake", Key="slot")["Body"].read() == winner


def test_a_request_does_not_wait_for_the_one_before_it() -> None:
    """Several requests are in the backend at once: each of them waits there until all have come."""
    together = threading.Barrier(4, timeout=BUSY_S)

    class Slow(Moto):
        def answer(self, request: Request) -> Reply:
            if request.operation == "PutObject":
                together.wait()
            return super().answer(request)

    with EmbeddedS3(buckets=["lake"], backend=Slow()) as s3, ThreadPoolExecutor(4) as pool:
        clients = [s3.client() for _ in range(4)]
        list(pool.map(lambda client: client.put_object(Bucket="lake", Key="k", Body=b""), clients))
    assert not together.broken


def test_no_update_by_compare_and_swap_is_lost(s3: EmbeddedS3) -> None:
    """A counter that many clients increment with If-Match ends at the number of successes."""
    clients = [s3.client() for _ in range(4)]
    clients[0].put_object(Bucket="lake", Key="n", Body=b"0")

    def increase(number: int) -> int:
        client = clients[number % 4]
        for _attempt in range(200):
            read = client.get_object(Bucket="lake", Key="n")
            value = int(read["Body"].read()) + 1
            try:
                client.put_object(Bucket="lake", Key="n", Body=str(value).encode(), IfMatch=read["ETag"])
            except ClientError:
                continue
            return 1
        return 0

    with ThreadPoolExecutor(4) as pool:
        successes = sum(pool.map(increase, range(12)))
    assert int(s3.observer().get_object(Bucket="lake", Key="n")["Body"].read()) == successes == 12


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.get_object(Bucket="private", Key="missing"),
        lambda client: client.head_object(Bucket="private", Key="missing"),
        lambda client: client.list_objects_v2(Bucket="private"),
        lambda client: client.list_objects(Bucket="private"),
    ],
)
def test_who_may_not_list_is_told_403(s3: EmbeddedS3, call: Callable[[S3Client], object]) -> None:
    """Without ListBucket a missing key and a listing are both 403."""
    with pytest.raises(ClientError) as caught:
        call(s3.client())
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_who_may_list_just_the_key_is_told_404(s3: EmbeddedS3) -> None:
    """A caller that may list just the key gets 404, like the stack's roles, which may not list the bucket."""
    for call, status in (("list_objects_v2", 403), ("get_object", 404)):
        with pytest.raises(ClientError) as caught:
            getattr(s3.client(), call)(Bucket="named", **({} if call.startswith("list") else {"Key": "missing"}))
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status


def test_who_may_not_list_can_still_read_and_write(s3: EmbeddedS3) -> None:
    """In an unlistable bucket only missing keys and listings answer differently."""
    client = s3.client()
    client.put_object(Bucket="private", Key="k", Body=b"1", IfNoneMatch="*")
    assert client.get_object(Bucket="private", Key="k")["Body"].read() == b"1"
    with pytest.raises(ClientError) as caught:
        client.put_object(Bucket="private", Key="k", Body=b"2", IfNoneMatch="*")
    assert caught.value.response["Error"]["Code"] == "PreconditionFailed"


def test_a_missing_key_is_404_elsewhere(s3: EmbeddedS3) -> None:
    """A caller that may list a bucket gets 404 for a missing key."""
    with pytest.raises(ClientError) as caught:
        s3.client().get_object(Bucket="lake", Key="missing")
    assert caught.value.response["Error"]["Code"] == "NoSuchKey"


def test_the_observer_is_not_seen_and_not_hit(s3: EmbeddedS3) -> None:
    """The observer may list an unlistable bucket, is hit by no rule, and leaves no trace."""
    s3.wire.add(Rule(Match(), Refuse(503), times=None))
    s3.observer().put_object(Bucket="private", Key="k", Body=b"")
    assert s3.keys("private") == ("k",)
    assert s3.trace() == ()


def test_a_catalog_is_asked_through_the_wire(s3: EmbeddedS3) -> None:
    """The catalog answers through the wire; trace and rules cover its requests together with those of S3."""
    with EmbeddedS3() as other:
        s3.wire.lead("catalog", f"127.0.0.1:{other.port}", "localhost")
        s3.client().put_object(Bucket="lake", Key="a", Body=b"")
        s3.wire.add(Rule(Match(operations={"CatalogChange"}), Refuse(503), nth=2))
        assert [put(s3, "/catalog/one"), put(s3, "/catalog/two")] == [200, 503]
        assert [bucket["Name"] for bucket in other.observer().list_buckets()["Buckets"]] == ["one"]
    assert [(one.operation, one.key) for one in s3.trace()] == [
        ("PutObject", "a"),
        ("CatalogChange", "one"),
        ("CatalogChange", "two"),
    ]


def put(s3: EmbeddedS3, path: str) -> int:
    connection = HTTPConnection("127.0.0.1", s3.port)
    try:
        connection.request("PUT", path)
        return connection.getresponse().status
    finally:
        connection.close()
