from __future__ import annotations

from datetime import UTC, datetime

from safewriter.objects.store import Upload


def test_an_upload_is_known_by_key_and_id_alone() -> None:
    """Only a listing tells when it was begun."""
    assert Upload("key", "id", datetime(2026, 11, 20, tzinfo=UTC)) == Upload("key", "id")
    assert Upload("key", "id") != Upload("key", "other")
