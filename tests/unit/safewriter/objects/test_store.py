"""Object stores identify an upload by key and id, and delete listed keys in bounded batches."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from safewriter.objects.store import Upload, batches

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_an_upload_is_known_by_key_and_id_alone() -> None:
    """Only a listing has the time of its begin."""
    assert Upload("key", "id", datetime(2026, 11, 20, tzinfo=UTC)) == Upload("key", "id")
    assert Upload("key", "id") != Upload("key", "other")


def test_a_batch_goes_before_the_next_names_are_listed() -> None:
    """So the names of millions of objects are never in memory at once."""
    taken: list[str] = []

    def listed() -> Iterator[str]:
        for number in range(5_000):
            taken.append(str(number))
            yield taken[-1]

    assert next(batches(listed())) == taken
    assert len(taken) == 1_000


def test_a_key_that_no_list_can_hold_is_a_batch() -> None:
    """A store deletes it by a request of its own, and the caller checks its time before each."""
    assert list(batches(["a", "b\x01", "c", "d\x01"])) == [["b\x01"], ["d\x01"], ["a", "c"]]
