"""A prefix for each test, and a build of it in a step of its own."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from safewriter.snapshots import BuildResult, WriteConfig, binary_col, write_sharded
from tests.support.snapshot_prefix import SnapshotPrefix

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.lake import Lake


class Build(Protocol):
    """Builds a snapshot of `id` and `v` at the test's prefix; `config`: fields of `WriteConfig`."""

    def __call__(self, df: DataFrame, *, step: str | None = None, num_dbs: int = 2, **config: Any) -> BuildResult: ...


@pytest.fixture
def prefix(lake: Lake, s3: EmbeddedS3) -> SnapshotPrefix:
    return SnapshotPrefix(s3.observer(), f"snapshots/{uuid.uuid4().hex}")


@pytest.fixture
def build(prefix: SnapshotPrefix) -> Build:
    def built(df: DataFrame, *, step: str | None = None, num_dbs: int = 2, **config: Any) -> BuildResult:
        return write_sharded(
            df,
            WriteConfig(num_dbs=num_dbs, s3_prefix=prefix.uri, **config),
            key_col="id",
            value_spec=binary_col("v"),
            step=step or uuid.uuid4().hex,
        )

    return built
