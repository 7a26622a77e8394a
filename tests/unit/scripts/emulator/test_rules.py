from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError, HTTPClientError

from scripts.emulator import Delay, EmbeddedS3, Freeze, Kill, Late, LoseReply, Match, Refuse, Rule
from scripts.emulator.exchange import Request

if TYPE_CHECKING:
    from collections.abc import Iterator

PUT = Match(operations={"PutObject"})


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=["lake"]) as running:
        yield running


@pytest.fixture
def s3(server: EmbeddedS3) -> EmbeddedS3:
    server.reset()
    return server


def put(s3: EmbeddedS3, key: str = "k", body: bytes = b"0123456789") -> int:
    """Return the status that the client sees, 0 for a connection that was closed."""
    try:
        answer = s3.client().put_object(Bucket="lake", Key=key, Body=body)
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"]
    except HTTPClientError:
        return 0
    return answer["ResponseMetadata"]["HTTPStatusCode"]


def request(operation: str = "PutObject", key: str = "t/a.parquet") -> Request:
    method = {"PutObject": "PUT", "GetObject": "GET"}[operation]

    def never(_: Request) -> None:
        raise AssertionError

    return Request.of({"REQUEST_METHOD": method, "PATH_INFO": f"/lake/{key}"}, never)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("match", "hit"),
    [
        (Match(), True),
        (Match(operations={"PutObject", "CopyObject"}), True),
        (Match(operations={"GetObject"}), False),
        (Match(bucket="lake"), True),
        (Match(bucket="other"), False),
        (Match(key=r"\.parquet$"), True),
        (Match(key="^a"), False),
        (Match(key_class="data"), True),
        (Match(key_class="checkpoint"), False),
        (Match(is_mutating=True), True),
        (Match(is_mutating=False), False),
        (Match(bucket="lake", key_class="checkpoint"), False),
    ],
)
def test_every_restriction_of_a_match_must_hold(match: Match, *, hit: bool) -> None:
    """A match restricts by operation, bucket, key, class and effect, together."""
    assert match(request()) is hit


@pytest.mark.parametrize(
    ("nth", "times", "expected"),
    [(1, 1, "xooo"), (2, 1, "oxoo"), (2, 2, "oxxo"), (3, None, "ooxx"), (1, None, "xxxx"), (9, 1, "oooo")],
)
def test_a_rule_fires_from_the_nth_match_so_many_times(nth: int, times: int | None, expected: str) -> None:
    """`nth` and `times` select which of the matching requests are hit; others are not counted."""
    rule = Rule(PUT, Refuse(), nth=nth, times=times)
    hits = []
    for _ in expected:
        assert not rule.takes(request("GetObject"))
        hits.append("x" if rule.takes(request()) else "o")
    assert "".join(hits) == expected
    assert rule.hits == expected.count("x")


def test_a_rule_says_when_it_has_fired(s3: EmbeddedS3) -> None:
    """`fired` is false within its bound before the action, and true after."""
    rule = s3.wire.add(Rule(PUT, Refuse()))
    assert not rule.fired(timeout_s=0)
    put(s3)
    assert rule.fired(timeout_s=0)


@pytest.mark.parametrize("status", [403, 409, 500, 503])
def test_refuse_applies_nothing(s3: EmbeddedS3, status: int) -> None:
    """A refused request gets its status and leaves no object; the next one is applied."""
    s3.wire.add(Rule(PUT, Refuse(status)))
    assert put(s3) == status
    assert s3.keys("lake") == ()
    assert put(s3) == 200


def test_an_error_has_the_code_of_s3(s3: EmbeddedS3) -> None:
    """A 409 is told as ConditionalRequestConflict, which clients look for."""
    s3.wire.add(Rule(PUT, Refuse(409)))
    with pytest.raises(ClientError) as caught:
        s3.client().put_object(Bucket="lake", Key="k", Body=b"", IfNoneMatch="*")
    assert caught.value.response["Error"]["Code"] == "ConditionalRequestConflict"


@pytest.mark.parametrize(("status", "seen"), [(503, 503), (500, 500), (None, 0)])
def test_a_lost_reply_has_been_applied(s3: EmbeddedS3, status: int | None, seen: int) -> None:
    """The client is told of an error, or of nothing, and the object is there."""
    s3.wire.add(Rule(PUT, LoseReply(status)))
    assert put(s3) == seen
    assert s3.keys("lake") == ("k",)


def test_the_retry_of_a_conditional_put_with_a_lost_reply_meets_its_own_object(s3: EmbeddedS3) -> None:
    """This is the trap that a guarded commit must see through: 412 for a write of one's own."""
    s3.wire.add(Rule(PUT, LoseReply(503)))
    client = s3.client()
    codes = []
    for _ in range(2):
        with pytest.raises(ClientError) as caught:
            client.put_object(Bucket="lake", Key="k", Body=b"mine", IfNoneMatch="*")
        codes.append(caught.value.response["ResponseMetadata"]["HTTPStatusCode"])
    assert codes == [503, 412]


@pytest.mark.parametrize(("phase", "keys"), [("before", ()), ("torn", ()), ("after", ("k",))])
def test_kill_leaves_what_its_phase_says(s3: EmbeddedS3, phase: str, keys: tuple[str, ...]) -> None:
    """Before and torn apply nothing, after applies; the client is ended and never gets an answer."""
    ended = threading.Event()
    s3.wire.add(Rule(PUT, Kill(phase, ended.set)))  # type: ignore[arg-type]
    assert put(s3) == 0
    assert ended.is_set()
    assert s3.keys("lake") == keys


def test_torn_has_half_of_the_body(s3: EmbeddedS3) -> None:
    """The trace shows how much of the body was on the wire when the client died."""
    s3.wire.add(Rule(PUT, Kill("torn", lambda: None)))
    put(s3, body=b"0123456789")
    assert [exchange.body_bytes for exchange in s3.trace()] == [5]


@pytest.mark.parametrize(("then", "seen"), [("dropped", 0), (503, 503)])
def test_late_lands_only_when_it_is_released(s3: EmbeddedS3, then: str | int, seen: int) -> None:
    """The client has gone or has been told of an error; the request lands afterwards."""
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
    """The client that waits gets the answer of S3 itself, after the release."""
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
    """What has landed does not land again."""
    late = Late()
    s3.wire.add(Rule(PUT, late))
    put(s3)
    late.release()
    s3.observer().delete_object(Bucket="lake", Key="k")
    late.release()
    assert s3.keys("lake") == ()


def test_late_ends_its_client(s3: EmbeddedS3) -> None:
    """With `end` the client is killed while its request is on the way."""
    ended = threading.Event()
    s3.wire.add(Rule(PUT, Late(end=ended.set)))
    put(s3)
    assert ended.is_set()


def test_freeze_stops_the_client_before_it_applies(s3: EmbeddedS3) -> None:
    """While the client is being stopped nothing of its request is to be seen; then it lands."""
    seen: list[tuple[str, ...]] = []
    s3.wire.add(Rule(PUT, Freeze(lambda: seen.append(s3.keys("lake")))))
    assert put(s3) == 200
    assert seen == [()]
    assert s3.keys("lake") == ("k",)


def test_delay_does_not_hold_up_others(s3: EmbeddedS3) -> None:
    """While one request is delayed, another one is answered."""
    rule = s3.wire.add(Rule(Match(key="slow"), Delay(400)))
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(put, s3, "slow")
        assert put(s3, "fast") == 200
        assert not rule.fired(timeout_s=0)
        assert slow.result(timeout=10) == 200


def test_the_first_rule_that_takes_a_request_acts_and_the_others_count_it(s3: EmbeddedS3) -> None:
    """`nth` of a rule means the same whether other rules are there or not."""
    s3.wire.add(Rule(PUT, Refuse(503)))
    s3.wire.add(Rule(PUT, Refuse(409), nth=2))
    assert [put(s3), put(s3), put(s3)] == [503, 409, 200]
