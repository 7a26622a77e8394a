"""One Spark session for all tests of this folder; a table, a run and an environment for each test."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING

import pytest

from scripts.emulator.s3 import EmbeddedS3
from scripts.emulator.spark import build_session
from tests.support.lake import CHECKPOINTS, LAKE, Lake

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def s3() -> Iterator[EmbeddedS3]:
    """An S3 of this session's own, whose checkpoint bucket may not be listed by a missing key's 404."""
    with EmbeddedS3(buckets=(LAKE, CHECKPOINTS), unlistable=(CHECKPOINTS,)) as server:
        yield server


@pytest.fixture(scope="session")
def spark(s3: EmbeddedS3) -> Iterator[SparkSession]:
    """The one session: its JVM takes the environment's credentials when it starts."""
    before = dict(os.environ)
    os.environ.update(s3.environment())
    session = build_session(s3.endpoint)
    try:
        yield session
    finally:
        session.stop()
        os.environ.clear()
        os.environ.update(before)


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
