"""The store on S3 with lost, wrong or late answers."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config

from safewriter.objects import PreconditionFailed, StoreError
from safewriter.objects.s3 import PAUSES_S, S3ObjectStore
from soal.testing.s3 import Match, Refuse, Reply, Request
from tests.contract.bench import GET, PUT, TRIES, Bench, keys
from tests.support.network_faults import LoseReply

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_s3 import S3Client


@pytest.mark.parametrize("status", [500, 503, 409, None, 412])
def test_a_creation_whose_answer_was_lost_is_known_again(
    s3: Bench, remote: S3ObjectStore, naps: list[float], status: int | None
) -> None:
    """The store reads its own bytes back: it has won, although a proxy's or an SDK's retry reports a conflict."""
    s3.add(PUT, LoseReply(status))

    etag = remote.create("a", b"mine")

    found = remote.get("a")
    assert found is not None
    assert (found.body, found.etag) == (b"mine", etag)
    assert s3.operations().count("PutObject") == 1
    assert naps == []


@pytest.mark.parametrize("status", [500, 503, 409, None, 412])
def test_a_replacement_whose_answer_was_lost_is_known_again(
    s3: Bench, remote: S3ObjectStore, status: int | None
) -> None:
    """Otherwise the owner of a document would assume that another attempt has taken it over."""
    before = remote.create("a", b"1")
    s3.add(PUT, LoseReply(status))

    etag = remote.replace("a", b"mine", etag=before)

    found = remote.get("a")
    assert found is not None
    assert (found.body, found.etag) == (b"mine", etag)


def test_a_creation_that_was_lost_twice_in_two_ways_is_not_lost(s3: Bench, remote: S3ObjectStore) -> None:
    """Neither the answer nor the first read-back arrives; the second does."""
    s3.add(PUT, LoseReply(503))
    s3.add(GET, Refuse(503))

    remote.create("a", b"mine")

    assert s3.operations().count("PutObject") == 1


def test_a_creation_that_nobody_can_tell_of_is_neither_won_nor_lost(s3: Bench, remote: S3ObjectStore) -> None:
    """Without a read-back the outcome is unknown, and the error says so."""
    s3.add(PUT, LoseReply(503))
    s3.add(GET, Refuse(503), times=None)

    with pytest.raises(StoreError) as caught:
        remote.create("a", b"mine")

    assert not caught.value.denied
    assert s3.server.keys(s3.lake) == ("some/table/a",)


@pytest.mark.parametrize("status", [409, 500, 503])
def test_a_race_that_s3_did_not_decide_is_run_again(
    s3: Bench, remote: S3ObjectStore, naps: list[float], status: int
) -> None:
    """Neither 409 nor a server's error is a defeat: the store repeats the same request."""
    s3.add(PUT, Refuse(status))
    etag = remote.create("a", b"1")
    s3.add(PUT, Refuse(status), times=TRIES - 1)

    remote.replace("a", b"2", etag=etag)

    found = remote.get("a")
    assert found is not None
    assert found.body == b"2"
    assert naps == [PAUSES_S[0], *PAUSES_S]


def test_a_race_that_was_run_again_can_be_lost(s3: Bench, remote: S3ObjectStore) -> None:
    """Another writer was faster in between, so the answer is a defeat."""

    def taken(request: Request) -> Reply:
        s3.put("some/table/a", b"theirs")
        return Reply.error(409, "a race")

    s3.add(PUT, taken)

    with pytest.raises(PreconditionFailed):
        remote.create("a", b"mine")

    found = remote.get("a")
    assert found is not None
    assert found.body == b"theirs"


@pytest.mark.parametrize("status", [409, 500, 503])
@pytest.mark.parametrize("call", ["get", "put", "create", "replace", "delete", "list", "uploads"])
def test_tries_are_bounded(s3: Bench, remote: S3ObjectStore, naps: list[float], call: str, status: int) -> None:
    """A server that always fails leads to an error that names request and key, and may be retried later."""
    etag = remote.create("a", b"1")
    s3.server.wire.clear_trace()
    conditional = call in ("create", "replace")  # their read-backs are answered
    s3.add(PUT if conditional else Match(), Refuse(status), times=None)
    calls: dict[str, Callable[[], object]] = {
        "get": lambda: remote.get("a"),
        "put": lambda: remote.put("a", b"2"),
        "create": lambda: remote.create("b", b"2"),
        "replace": lambda: remote.replace("a", b"2", etag=etag),
        "delete": lambda: remote.delete("a"),
        "list": lambda: keys(remote.list("a")),
        "uploads": lambda: list(remote.uploads("a")),
    }

    with pytest.raises(StoreError, match=f"s3://{s3.lake}/some/table/") as caught:
        calls[call]()

    assert not caught.value.denied
    assert naps == list(PAUSES_S)
    refused = [exchange for exchange in s3.server.trace() if exchange.status == status]
    assert len(refused) == TRIES


@pytest.mark.parametrize("call", ["get", "put", "delete", "list"])
def test_one_error_of_the_server_is_no_error(s3: Bench, remote: S3ObjectStore, call: str) -> None:
    """Reads and unconditional writes may always be repeated."""
    remote.put("a", b"1")
    s3.add(Match(), Refuse(503))
    calls: dict[str, Callable[[], object]] = {
        "get": lambda: remote.get("a"),
        "put": lambda: remote.put("a", b"2"),
        "delete": lambda: remote.delete("a"),
        "list": lambda: keys(remote.list("a")),
    }

    calls[call]()


def test_a_server_that_does_not_answer_is_an_error_like_any_other(naps: list[float]) -> None:
    """A server that is not listening: the outcome is unknown, not denied, and may be retried later."""
    client: S3Client = boto3.client(
        "s3", endpoint_url="http://127.0.0.1:9", config=Config(retries={"total_max_attempts": 1})
    )
    store = S3ObjectStore(client, "lake", sleep=naps.append)

    calls: tuple[Callable[[], object], ...] = (
        lambda: store.put("a", b""),
        lambda: store.create("a", b""),
        lambda: store.get("a"),
    )
    for call in calls:
        with pytest.raises(StoreError) as caught:
            call()
        assert not caught.value.denied


def test_the_servers_date_is_the_servers(s3: Bench, remote: S3ObjectStore) -> None:
    """S3's clock judges a lease, not this machine's."""
    remote.put("a", b"1")
    s3.server.wire.clock_ahead_s = 3600.0
    try:
        found = remote.get("a")
    finally:
        s3.server.wire.clock_ahead_s = 0.0

    assert found is not None
    assert found.server_date - found.last_modified > timedelta(minutes=59)
