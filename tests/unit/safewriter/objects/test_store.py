from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from safewriter.objects.store import Upload, batches

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_an_upload_is_known_by_key_and_id_alone() -> None:
    """Only a listing tells when it was begun."""
    assert Upload("key", "id", datetime(2026, 11, 20, tzinfo=UTC)) == Upload("key", "id")
    assert Upload("key", "id") != Upload("key", "other")


def test_a_batch_goes_before_the_next_names_are_listed() -> None:
    """So nobody holds the names of a folder with millions of objects."""
    taken: list[str] = []

    def listed() -> Iterator[str]:
        for number in range(5_000):
            taken.append(str(number))
            yield taken[-1]

    assert next(batches(listed())) == taken
    assert len(taken) == 1_000
