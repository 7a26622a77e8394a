"""The environment of random histories: all writes belong to one run, and each attempt sets its own variables."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.support.lake import CHECKPOINTS

if TYPE_CHECKING:
    from soal.testing.s3.embedded import EmbeddedS3


@pytest.fixture
def of_one_run(s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of a job: all of a history's writes are of one run, and each attempt sets its own."""
    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SW_CHECKPOINT_BUCKET", CHECKPOINTS)
    monkeypatch.setenv("SOAL_RUN_KEY", f"history-{uuid.uuid4().hex}")
    monkeypatch.setenv("SOAL_RUN_ID", "")
