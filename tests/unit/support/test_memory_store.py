"""The tests' object store in memory imitates S3: clock, conditional writes, listings, messages, times of uploads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from safewriter.objects import PreconditionFailed
from safewriter.objects.store import Upload
from tests.support.memory_store import MemoryObjectStore

# Common tests with S3 are in tests/contract/test_object_store.py.


def test_its_clock_is_the_one_that_it_was_given() -> None:
    """An object keeps the time of its write; an answer's date is the time of the request."""
    clock = [datetime(2026, 11, 20, tzinfo=UTC)]
    store = MemoryObjectStore(lambda: clock[0])
    store.put("a", b"1")
    clock[0] += timedelta(seconds=30)

    found = store.get("a")

    assert found is not None
    assert found.server_date - found.last_modified == timedelta(seconds=30)


def test_of_many_creators_one_wins() -> None:
    """Conditional writes are atomic, from many threads too."""
    store = MemoryObjectStore()

    def create(number: int) -> int | None:
        try:
            store.create("a", str(number).encode())
        except PreconditionFailed:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        won = [number for number in pool.map(create, range(50)) if number is not None]

    found = store.get("a")
    assert found is not None
    assert [str(number).encode() for number in won] == [found.body]


def test_a_listing_is_what_was_there_when_it_began() -> None:
    """Deleting while listing, as clean-up does, does not affect the listing."""
    store = MemoryObjectStore()
    for name in "abc":
        store.put(name, b"")

    seen = []
    for listed in store.list(""):
        seen.append(listed.key)
        store.delete(listed.key)

    assert seen == ["a", "b", "c"]
    assert list(store.list("")) == []


def test_a_refusal_names_the_key() -> None:
    """The loser learns the key."""
    store = MemoryObjectStore()
    store.put("a", b"1")

    with pytest.raises(PreconditionFailed, match="a"):
        store.create("a", b"2")


def test_its_uri_has_its_bucket() -> None:
    """Messages look as on S3."""
    assert MemoryObjectStore(bucket="lake").uri("t/x") == "s3://lake/t/x"


def test_an_upload_keeps_the_time_that_it_was_given() -> None:
    """A test may begin one in the past."""
    now, before = datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)
    store = MemoryObjectStore(lambda: now)
    store.begin_upload(Upload("a", "1", before))
    store.begin_upload(Upload("b", "1"))
    assert [upload.initiated for upload in store.uploads("")] == [before, now]
