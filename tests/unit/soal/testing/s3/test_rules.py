"""The emulated S3's fault rules refuse, kill, tear or delay exactly the requests that they match."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from soal.testing.s3 import Delay, EmbeddedS3, Kill, Match, Refuse, Rule
from soal.testing.s3.exchange import Request
from tests.support.putting import put

pytestmark = pytest.mark.slow

PUT = Match(operations={"PutObject"})


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
    """A match restricts by operation, bucket, key, class and effect; all must hold."""
    assert match(request()) is hit


@pytest.mark.parametrize(
    ("nth", "times", "expected"),
    [(1, 1, "xooo"), (2, 1, "oxoo"), (2, 2, "oxxo"), (3, None, "ooxx"), (1, None, "xxxx"), (9, 1, "oooo")],
)
def test_a_rule_fires_from_the_nth_match_so_many_times(nth: int, times: int | None, expected: str) -> None:
    """`nth` and `times` select among the matching requests; other requests are not counted."""
    rule = Rule(PUT, Refuse(), nth=nth, times=times)
    hits = []
    for _ in expected:
        assert not rule.takes(request("GetObject"))
        hits.append("x" if rule.takes(request()) else "o")
    assert "".join(hits) == expected
    assert rule.hits == expected.count("x")


def test_a_rule_says_when_it_has_fired(s3: EmbeddedS3) -> None:
    """`fired` returns False before the action, and True after it."""
    rule = s3.wire.add(Rule(PUT, Refuse()))
    assert not rule.fired(timeout_s=0)
    put(s3)
    assert rule.fired(timeout_s=0)


@pytest.mark.parametrize("status", [403, 409, 500, 503])
def test_refuse_applies_nothing(s3: EmbeddedS3, status: int) -> None:
    """A refused request gets the status and leaves no object; the next request is applied."""
    s3.wire.add(Rule(PUT, Refuse(status)))
    assert put(s3) == status
    assert s3.keys("lake") == ()
    assert put(s3) == 200


def test_an_error_has_the_code_of_s3(s3: EmbeddedS3) -> None:
    """The error of a 409 is ConditionalRequestConflict, which clients look for."""
    s3.wire.add(Rule(PUT, Refuse(409)))
    with pytest.raises(ClientError) as caught:
        s3.client().put_object(Bucket="lake", Key="k", Body=b"", IfNoneMatch="*")
    assert caught.value.response["Error"]["Code"] == "ConditionalRequestConflict"


@pytest.mark.parametrize(("phase", "keys"), [("before", ()), ("torn", ()), ("after", ("k",))])
def test_kill_leaves_what_its_phase_says(s3: EmbeddedS3, phase: str, keys: tuple[str, ...]) -> None:
    """`before` and `torn` apply nothing, `after` applies; the client is killed without an answer."""
    ended = threading.Event()
    s3.wire.add(Rule(PUT, Kill(phase, ended.set)))  # type: ignore[arg-type]
    assert put(s3) == 0
    assert ended.is_set()
    assert s3.keys("lake") == keys


def test_torn_has_half_of_the_body(s3: EmbeddedS3) -> None:
    """The trace shows how much of the body had arrived when the client died."""
    s3.wire.add(Rule(PUT, Kill("torn", lambda: None)))
    put(s3, body=b"0123456789")
    assert [exchange.body_bytes for exchange in s3.trace()] == [5]


def test_delay_does_not_hold_up_others(s3: EmbeddedS3) -> None:
    """During a delay another request is answered."""
    rule = s3.wire.add(Rule(Match(key="slow"), Delay(400)))
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(put, s3, "slow")
        assert put(s3, "fast") == 200
        assert not rule.fired(timeout_s=0)
        assert slow.result(timeout=10) == 200


def test_the_first_rule_that_takes_a_request_acts_and_the_others_count_it(s3: EmbeddedS3) -> None:
    """`nth` of a rule does not depend on other rules."""
    s3.wire.add(Rule(PUT, Refuse(503)))
    s3.wire.add(Rule(PUT, Refuse(409), nth=2))
    assert [put(s3), put(s3), put(s3)] == [503, 409, 200]
