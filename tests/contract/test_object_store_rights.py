"""S3's answers to a caller that lacks a right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.objects import PreconditionFailed, StoreError
from safewriter.objects.s3 import PAUSES_S, S3ObjectStore
from soal.testing.s3 import Match, Refuse, Reply, Request
from tests.contract.bench import GET, PRIVATE, PUT, Bench, keys
from tests.support.network_faults import LoseReply

if TYPE_CHECKING:
    from collections.abc import Callable


def test_without_the_right_to_list_nobody_knows_of_a_missing_object(s3: Bench) -> None:
    """S3 answers 403 then, as for an object that may not be read; the error says so, and names both rights."""
    store = S3ObjectStore(s3.client, PRIVATE)

    for read in (store.get, store.stream):
        with pytest.raises(StoreError, match="denied, or not there") as caught:
            read("none")
        assert caught.value.denied
        assert f"s3://{PRIVATE}/none" in str(caught.value)
        assert "s3:GetObject" in str(caught.value)
        assert "s3:ListBucket" in str(caught.value)
    assert [exchange.status for exchange in s3.server.trace()] == [403, 403]


def test_without_the_right_to_list_a_creation_tells_that_there_was_none(s3: Bench) -> None:
    """So the first claim of a write needs no read."""
    store = S3ObjectStore(s3.client, PRIVATE)
    key = f"new-{s3.lake}"

    store.create(key, b"1")

    with pytest.raises(PreconditionFailed):
        store.create(key, b"2")


@pytest.mark.parametrize("status", [503, None])
def test_without_the_right_to_list_a_creation_is_sent_again(s3: Bench, naps: list[float], status: int | None) -> None:
    """A server's error is no refusal, even where the read-back is denied: the condition makes the second PUT harmless,
    whether or not the first one has arrived.
    """
    store = S3ObjectStore(s3.client, PRIVATE, sleep=naps.append)
    refused, lost = f"refused-{s3.lake}", f"lost-{s3.lake}"

    s3.add(PUT, Refuse(503))
    store.create(refused, b"1")
    s3.add(PUT, LoseReply(status))
    store.create(lost, b"1")

    assert [s3.observer.get_object(Bucket=PRIVATE, Key=key)["Body"].read() for key in (refused, lost)] == [b"1"] * 2
    assert naps == [PAUSES_S[0]]


def test_a_creation_that_may_not_be_read_back_is_neither_won_nor_lost(s3: Bench, remote: S3ObjectStore) -> None:
    """After a lost answer, 412 may be about the caller's own object, which it cannot read."""
    s3.add(PUT, LoseReply(None))
    s3.add(GET, Refuse(403), times=None)

    with pytest.raises(StoreError, match="denied, or not there") as caught:
        remote.create("a", b"mine")

    assert caught.value.denied
    assert s3.server.keys(s3.lake) == ("some/table/a",)


@pytest.mark.parametrize("kind", ["create", "replace"])
def test_a_lost_race_that_may_not_be_read_back_is_unknown(s3: Bench, remote: S3ObjectStore, kind: str) -> None:
    """412 reports that an object exists, but not whose it is."""
    s3.put("some/table/a", b"theirs")
    s3.add(GET, Refuse(403), times=None)

    with pytest.raises(StoreError, match="denied, or not there"):
        remote.create("a", b"mine") if kind == "create" else remote.replace("a", b"mine", etag='"old"')


def test_one_object_of_a_batch_that_may_not_be_deleted_is_an_error(s3: Bench, remote: S3ObjectStore) -> None:
    """S3 answers 200, and lists each object that stays."""
    for key in ("a", "b"):
        remote.put(key, b"1")

    def refused(request: Request) -> Reply:
        assert request.key == ""
        body = b"<DeleteResult><Error><Key>some/table/b</Key><Code>AccessDenied</Code></Error></DeleteResult>"
        return Reply(200, (("Content-Type", "application/xml"), ("x-amz-request-id", "one")), body)

    s3.add(Match(operations={"DeleteObjects"}), refused)

    with pytest.raises(StoreError, match=r"AccessDenied.*some/table/b") as caught:
        remote.delete_all(["a", "b"])

    assert caught.value.denied


def test_without_the_right_to_list_a_listing_is_denied(s3: Bench) -> None:
    """An empty answer would be taken for an empty log."""
    with pytest.raises(StoreError, match="AccessDenied") as caught:
        keys(S3ObjectStore(s3.client, PRIVATE).list(""))

    assert caught.value.denied


def test_a_bucket_that_is_not_there_is_denied(s3: Bench) -> None:
    """A retry will not help, and the error says so."""
    store = S3ObjectStore(s3.client, "no-such-bucket")

    requests: tuple[Callable[[], object], ...] = (
        lambda: store.get("a"),
        lambda: store.put("a", b""),
        lambda: store.create("a", b""),
        lambda: store.replace("a", b"", etag="x"),
    )
    for request in requests:
        with pytest.raises(StoreError, match="NoSuchBucket") as caught:
            request()
        assert caught.value.denied


def test_a_write_that_is_not_allowed_is_denied_at_once(s3: Bench, remote: S3ObjectStore, naps: list[float]) -> None:
    """It is not repeated, and not taken for a lost race."""
    s3.add(PUT, Refuse(403), times=None)

    writes: tuple[Callable[[], object], ...] = (lambda: remote.put("a", b""), lambda: remote.create("a", b""))
    for write in writes:
        with pytest.raises(StoreError) as caught:
            write()
        assert caught.value.denied
    assert naps == []
