"""What the store on S3 does when an answer is not as hoped."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config

from safewriter.objects import PreconditionFailed, StoreError
from safewriter.objects.s3 import PAUSES_S, S3ObjectStore
from scripts.emulator import Match, Refuse, Reply, Request
from tests.contract.bench import GET, PUT, TRIES, Bench, keys
from tests.support.network_faults import LoseReply

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_s3 import S3Client


@pytest.mark.parametrize("status", [500, 503, 409, None, 412])
def test_a_creation_whose_answer_was_lost_is_known_again(
    s3: Bench, remote: S3ObjectStore, naps: list[float], status: int | None
) -> None:
    """Its own bytes are read back: it has won, although somebody (a proxy, an SDK's retry) says otherwise."""
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
    """Else the owner of a document would believe that somebody has taken it over."""
    before = remote.create("a", b"1")
    s3.add(PUT, LoseReply(status))

    etag = remote.replace("a", b"mine", etag=before)

    found = remote.get("a")
    assert found is not None
    assert (found.body, found.etag) == (b"mine", etag)


def test_a_creation_that_was_lost_twice_in_two_ways_is_not_lost(s3: Bench, remote: S3ObjectStore) -> None:
    """Neither the answer nor the first reading back comes through; the second reading does."""
    s3.add(PUT, LoseReply(503))
    s3.add(GET, Refuse(503))

    remote.create("a", b"mine")

    assert s3.operations().count("PutObject") == 1


def test_a_creation_that_nobody_can_tell_of_is_neither_won_nor_lost(s3: Bench, remote: S3ObjectStore) -> None:
    """Without a way to read back the end is unknown, and says so."""
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
    """409 is not a defeat, nor is a server's error: the same request is sent once more."""
    s3.add(PUT, Refuse(status))
    etag = remote.create("a", b"1")
    s3.add(PUT, Refuse(status), times=TRIES - 1)

    remote.replace("a", b"2", etag=etag)

    found = remote.get("a")
    assert found is not None
    assert found.body == b"2"
    assert naps == [PAUSES_S[0], *PAUSES_S]


def test_a_race_that_was_run_again_can_be_lost(s3: Bench, remote: S3ObjectStore) -> None:
    """Somebody else was faster in between, and that is the answer."""

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
    """A server that always fails ends in an error that names request and key, and is worth another try later."""
    etag = remote.create("a", b"1")
    s3.server.wire.clear_trace()
    conditional = call in ("create", "replace")  # what they read back is answered
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
    """Reads and unconditional writes may be repeated without a second thought."""
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
    """Nobody listens there: unknown, not denied, and worth another try later."""
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
    """A lease is judged by S3's clock, not by this machine's."""
    remote.put("a", b"1")
    s3.server.wire.clock_ahead_s = 3600.0
    try:
        found = remote.get("a")
    finally:
        s3.server.wire.clock_ahead_s = 0.0

    assert found is not None
    assert found.server_date - found.last_modified > timedelta(minutes=59)
