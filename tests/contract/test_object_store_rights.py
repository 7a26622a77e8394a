"""What a caller that lacks a right is told by S3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.objects import StoreError
from safewriter.objects.s3 import S3ObjectStore
from scripts.emulator import Refuse
from tests.contract.bench import PRIVATE, PUT, Bench, keys

if TYPE_CHECKING:
    from collections.abc import Callable


def test_without_the_right_to_list_a_missing_object_is_still_none(s3: Bench) -> None:
    """S3 says 403 then, and the first claim of a write must not fail on it."""
    store = S3ObjectStore(s3.client, PRIVATE)

    assert store.get("none") is None
    store.create("a", b"1")
    assert store.get("a") is not None
    assert [exchange.status for exchange in s3.server.trace()] == [403, 200, 200]


def test_without_the_right_to_list_a_listing_is_denied(s3: Bench) -> None:
    """An empty answer would be taken for an empty log."""
    with pytest.raises(StoreError, match="AccessDenied") as caught:
        keys(S3ObjectStore(s3.client, PRIVATE).list(""))

    assert caught.value.denied


def test_a_bucket_that_is_not_there_is_denied(s3: Bench) -> None:
    """Trying again will not help, and the error tells."""
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
