"""Uploads of a process go through one client."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import Mock

from safewriter.objects import s3
from safewriter.snapshots.write.upload import uploader_of

if TYPE_CHECKING:
    import pytest


def test_tasks_of_a_process_share_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each endpoint: a session may go on with another S3."""
    made = Mock()
    monkeypatch.setattr(s3, "s3_client", made)
    try:
        assert uploader_of("http://one.example") is uploader_of("http://one.example")
        assert uploader_of("http://two.example") is not uploader_of("http://one.example")
        assert made.call_count == 2
    finally:
        uploader_of.cache_clear()
