"""The tests' network faults lose a reply, delay a request or freeze a client, as a real network may."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError, HTTPClientError

from soal.testing.s3 import EmbeddedS3, Match, Rule
from tests.support.network_faults import Freeze, Late, LoseReply
from tests.support.putting import put

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

PUT = Match(operations={"PutObject"})


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=["lake"]) as running:
        yield running


@pytest.fixture
def s3(server: EmbeddedS3) -> EmbeddedS3:
    server.reset()
    return server


@pytest.mark.parametrize(("status", "seen"), [(503, 503), (500, 500), (None, 0)])
def test_a_lost_reply_has_been_applied(s3: EmbeddedS3, status: int | None, seen: int) -> None:
    """The client gets an error or nothing, and the object exists."""
    s3.wire.add(Rule(PUT, LoseReply(status)))
    assert put(s3) == seen
    assert s3.keys("lake") == ("k",)


def test_the_retry_of_a_conditional_put_with_a_lost_reply_meets_its_own_object(s3: EmbeddedS3) -> None:
    """The retry gets 412 because of its own object, which a guarded commit must recognise."""
    s3.wire.add(Rule(PUT, LoseReply(503)))
    client = s3.client()
    codes = []
    for _ in range(2):
        with pytest.raises(ClientError) as caught:
            client.put_object(Bucket="lake", Key="k", Body=b"mine", IfNoneMatch="*")
        codes.append(caught.value.response["ResponseMetadata"]["HTTPStatusCode"])
    assert codes == [503, 412]


@pytest.mark.parametrize(("then", "seen"), [("dropped", 0), (503, 503)])
def test_late_lands_only_when_it_is_released(s3: EmbeddedS3, then: str | int, seen: int) -> None:
    """The client has gone or got an error; the request lands when it is released."""
    late = Late(then)  # type: ignore[arg-type]
    s3.wire.add(Rule(PUT, late))
    assert put(s3) == seen
    assert s3.keys("lake") == ()
    assert [reply.status for reply in late.release()] == [200]
    assert s3.keys("lake") == ("k",)


def test_late_meets_what_came_in_between(s3: EmbeddedS3) -> None:
    """A conditional PUT that lands late finds its slot taken."""
    late = Late()
    s3.wire.add(Rule(PUT, late))
    with pytest.raises(HTTPClientError):
        s3.client().put_object(Bucket="lake", Key="k", Body=b"late", IfNoneMatch="*")
    assert put(s3, body=b"in between") == 200
    assert [reply.status for reply in late.release()] == [412]


def test_late_can_keep_its_client_waiting(s3: EmbeddedS3) -> None:
    """A waiting client gets S3's own answer, after the release."""
    late = Late("waits")
    rule = s3.wire.add(Rule(PUT, late))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(put, s3)
        assert rule.fired(timeout_s=10)
        assert not waiting.done()
        assert s3.keys("lake") == ()
        late.release()
        assert waiting.result(timeout=10) == 200


def test_releasing_twice_applies_once(s3: EmbeddedS3) -> None:
    """A second release does not apply the request again."""
    late = Late()
    s3.wire.add(Rule(PUT, late))
    put(s3)
    late.release()
    s3.observer().delete_object(Bucket="lake", Key="k")
    late.release()
    assert s3.keys("lake") == ()


def test_late_ends_its_client(s3: EmbeddedS3) -> None:
    """With `end` the client is killed while its request is in flight."""
    ended = threading.Event()
    s3.wire.add(Rule(PUT, Late(end=ended.set)))
    put(s3)
    assert ended.is_set()


def test_freeze_stops_the_client_before_it_applies(s3: EmbeddedS3) -> None:
    """The request is applied only after the client has been stopped."""
    seen: list[tuple[str, ...]] = []
    s3.wire.add(Rule(PUT, Freeze(lambda: seen.append(s3.keys("lake")))))
    assert put(s3) == 200
    assert seen == [()]
    assert s3.keys("lake") == ("k",)
