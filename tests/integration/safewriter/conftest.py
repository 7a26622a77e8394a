"""A table, a run and an environment for each test; the Spark session is the one of the whole test run."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.support.lake import CHECKPOINTS, Lake

if TYPE_CHECKING:
    from scripts.emulator.s3 import EmbeddedS3


@pytest.fixture
def lake(s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A table of the test's own, and a run of its own."""
    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SW_CHECKPOINT_BUCKET", CHECKPOINTS)
    monkeypatch.setenv("SOAL_RUN_KEY", f"test-{uuid.uuid4().hex}")
    monkeypatch.setenv("SOAL_RUN_ID", uuid.uuid4().hex)
    for name in ("SOAL_DEADLINE_EPOCH_MS", "SOAL_JOURNAL", "LAMBDA_TIMEOUT_MS", "AWS_LAMBDA_FUNCTION_NAME"):
        monkeypatch.delenv(name, raising=False)
    return Lake(s3.observer(), s3.endpoint, f"tables/{uuid.uuid4().hex}")
