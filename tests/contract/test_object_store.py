"""The promises of every object store, in memory and on S3."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from safewriter.objects import ObjectStore, PreconditionFailed, Upload, batches
from safewriter.objects.store import TooLarge
from tests.contract.bench import keys

if TYPE_CHECKING:
    from collections.abc import Callable


def test_what_was_put_is_got(store: ObjectStore) -> None:
    """Body and ETag are returned for the requested key."""
    etag = store.put("a/b c=ü%20.json", b"\x00body\xff")

    found = store.get("a/b c=ü%20.json")

    assert found is not None
    assert (found.key, found.body, found.etag) == ("a/b c=ü%20.json", b"\x00body\xff", etag)


def test_a_missing_object_is_none(store: ObjectStore) -> None:
    """Absence is an answer, not an error."""
    assert store.get("none") is None


def test_an_object_that_is_too_large_is_not_read(store: ObjectStore) -> None:
    """The error names the size; an object of exactly the maximum size is read."""
    store.put("a", b"12345")

    with pytest.raises(TooLarge, match="has 5 bytes, more than the 4"):
        store.get("a", max_bytes=4)

    found = store.get("a", max_bytes=5)
    assert found is not None
    assert found.body == b"12345"


def test_an_empty_object_is_an_object(store: ObjectStore) -> None:
    """An empty body is not a missing object."""
    store.put("empty", b"")

    found = store.get("empty")

    assert found is not None
    assert found.body == b""


def test_a_put_replaces_whatever_is_there(store: ObjectStore) -> None:
    """The unconditional write is the last word."""
    first = store.put("a", b"1")
    second = store.put("a", b"2")

    found = store.get("a")

    assert found is not None
    assert found.body == b"2"
    assert found.etag == second != first


def test_a_creation_wins_once(store: ObjectStore) -> None:
    """The second creation fails, and the first object stays."""
    etag = store.create("a", b"1")

    with pytest.raises(PreconditionFailed):
        store.create("a", b"2")

    found = store.get("a")
    assert found is not None
    assert (found.body, found.etag) == (b"1", etag)


def test_after_a_deletion_there_may_be_a_creation(store: ObjectStore) -> None:
    """Only the current state counts."""
    store.create("a", b"1")
    store.delete("a")

    store.create("a", b"2")


def test_of_many_creators_one_wins(store: ObjectStore) -> None:
    """Whatever the order of their arrival."""

    def create(number: int) -> int | None:
        try:
            store.create("contended", b"%d" % number)
        except PreconditionFailed:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        won = [number for number in pool.map(create, range(16)) if number is not None]

    found = store.get("contended")
    assert found is not None
    assert [b"%d" % number for number in won] == [found.body]


def test_a_replacement_needs_the_etag_of_what_is_there(store: ObjectStore) -> None:
    """The second replacement after the same read loses, and changes nothing."""
    first = store.create("a", b"1")
    second = store.replace("a", b"2", etag=first)

    with pytest.raises(PreconditionFailed):
        store.replace("a", b"3", etag=first)

    found = store.get("a")
    assert found is not None
    assert (found.body, found.etag) == (b"2", second)


def test_a_replacement_of_nothing_has_lost(store: ObjectStore) -> None:
    """A deleted object no longer matches the one that was read."""
    etag = store.create("a", b"1")
    store.delete("a")

    with pytest.raises(PreconditionFailed):
        store.replace("a", b"2", etag=etag)

    assert store.get("a") is None


def test_of_many_replacements_one_wins(store: ObjectStore) -> None:
    """This is the compare-and-swap on which every document relies."""
    etag = store.create("a", b"start")

    def replace(number: int) -> int | None:
        try:
            store.replace("a", b"%d" % number, etag=etag)
        except PreconditionFailed:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        won = [number for number in pool.map(replace, range(16)) if number is not None]

    found = store.get("a")
    assert found is not None
    assert [b"%d" % number for number in won] == [found.body]


def test_a_deletion_of_nothing_is_no_error(store: ObjectStore) -> None:
    """Deleting twice is deleting once."""
    store.put("a", b"1")
    store.delete("a")
    store.delete("a")

    assert store.get("a") is None


@pytest.mark.parametrize("wanted", [[], ["a"], ["a", "b/ü &<>%20", "none"]])
def test_a_batch_is_deleted_and_nothing_else(store: ObjectStore, wanted: list[str]) -> None:
    """Batches of no, one or several objects, whatever their names; a missing object is no error."""
    there = ["a", "a2", "b/ü &<>%20", "c"]
    for key in there:
        store.put(key, b"1")

    store.delete_all(wanted)

    assert keys(store.list("")) == [key for key in there if key not in wanted]


def test_batches_are_no_larger_than_s3_takes() -> None:
    """One request deletes a thousand keys, each key once."""
    cut = list(batches([str(number) for number in range(2001)]))

    assert [len(one) for one in cut] == [1000, 1000, 1]
    assert [key for one in cut for key in one] == [str(number) for number in range(2001)]
    assert list(batches([])) == []


def test_a_listing_is_in_order_and_below_its_prefix(store: ObjectStore) -> None:
    """Keys are relative to the store, neighbours that begin alike are left out, sizes are in bytes."""
    for key in ("b/2", "a", "b/10", "b", "c"):
        store.put(key, key.encode())

    assert keys(store.list("")) == ["a", "b", "b/10", "b/2", "c"]
    assert keys(store.list("b/")) == ["b/10", "b/2"]
    assert keys(store.list("none/")) == []
    assert [row.size for row in store.list("b/")] == [4, 3]


def test_a_listing_may_begin_after_a_key(store: ObjectStore) -> None:
    """The key itself is left out; it need not exist."""
    for number in range(5):
        store.put(f"log/{number:03}.json", b"")

    assert keys(store.list("log/", start_after="log/001.json")) == ["log/002.json", "log/003.json", "log/004.json"]
    assert keys(store.list("log/", start_after="log/001")) == [f"log/00{number}.json" for number in (1, 2, 3, 4)]
    assert keys(store.list("log/", start_after="log/9")) == []
    assert len(keys(store.list("log/", start_after="log/"))) == 5


def test_the_stores_own_clock_dates_everything(store: ObjectStore) -> None:
    """It dates object, listing and answer, all with a time zone."""
    store.put("a", b"1")

    found = store.get("a")
    (listed,) = store.list("a")

    assert found is not None
    now = datetime.now(UTC)
    for moment in (found.last_modified, found.server_date, listed.last_modified):
        assert abs(now - moment) < timedelta(minutes=5)
    assert found.server_date - found.last_modified > timedelta(seconds=-2)  # S3 returns whole seconds


def test_unfinished_uploads_are_found_and_aborted(store: ObjectStore, begin_upload: Callable[[str], Upload]) -> None:
    """They are listed below the prefix with their start times; aborting a missing upload is no error."""
    first, second, other = begin_upload("data/a"), begin_upload("data/b"), begin_upload("other")

    listed = sorted(store.uploads("data/"), key=lambda upload: upload.key)
    assert listed == [first, second]
    for upload in listed:
        assert upload.initiated is not None
        assert abs(datetime.now(UTC) - upload.initiated) < timedelta(minutes=5)
    store.abort(first)
    store.abort(first)

    assert list(store.uploads("data/")) == [second]
    assert {upload.key for upload in store.uploads("")} == {second.key, other.key}
    assert store.get("data/a") is None


def test_a_uri_names_bucket_and_key(store: ObjectStore) -> None:
    """Messages and documents use it to name an object, whatever prefix the store has."""
    assert store.uri("a/b").startswith("s3://")
    assert store.uri("a/b").endswith("a/b")
