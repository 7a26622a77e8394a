"""Make a test's next block belong to another attempt of the same run."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

__all__ = ["next_attempt"]


def next_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin another attempt, as a retry in another process does: the same run key, another run id."""
    monkeypatch.setenv("SOAL_RUN_ID", uuid.uuid4().hex)
