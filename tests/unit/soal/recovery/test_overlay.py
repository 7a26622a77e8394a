"""The overlay under a dry run of `soal recover` keeps all changes from the store, and lists them."""

from __future__ import annotations

from datetime import UTC, datetime

from safewriter.objects import Upload
from soal import recovery
from soal.recovery import Overlay
from tests.support.memory_store import MemoryObjectStore


def test_nothing_reaches_the_store_below() -> None:
    """The store below is unchanged; the overlay lists the changes in order, and reads through it see them."""
    below = MemoryObjectStore(bucket="lake")
    etag = below.create("a", b"1")
    below.create("b", b"1")
    below.begin_upload(Upload("c", "id"))
    over = Overlay(below, lambda: datetime.now(UTC))

    over.replace("a", b"2", etag=etag)
    over.delete("b")
    over.create("d", b"3")
    over.abort(Upload("c", "id"))

    assert over.changes == ["PUT s3://lake/a", "DELETE s3://lake/b", "PUT s3://lake/d", "ABORT upload of s3://lake/c"]
    assert [listed.key for listed in over.list("")] == ["a", "d"]
    found = over.get("a")
    assert found is not None
    assert found.body == b"2"
    assert (over.get("b"), list(over.uploads(""))) == (None, [])
    assert [listed.key for listed in below.list("")] == ["a", "b"]
    assert len(list(below.uploads(""))) == 1


def test_of_very_many_changes_the_last_are_counted() -> None:
    """Changes beyond the maximum are only counted, so that a dry run stays small."""
    over = Overlay(MemoryObjectStore(), lambda: datetime.now(UTC))
    for number in range(recovery._SHOWN_MAX + 3):
        over.delete(str(number))
    assert (len(over.changes), over.changes_more) == (recovery._SHOWN_MAX, 3)
