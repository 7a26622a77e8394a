"""A table, a run and an environment for each test; all tests share one Spark session."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.integration.safewriter.ice_rows import COLUMNS, append
from tests.support.lake import CHECKPOINTS, Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.ice import Catalog, Ice

CATALOGS = [
    "lite",
    *(pytest.param(name, marks=pytest.mark.matrix) for name in ("rest", "postgres")),
    *(pytest.param(name, marks=[pytest.mark.matrix, pytest.mark.aws]) for name in ("glue", "native")),
]


@pytest.fixture
def lake(s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A table for this test, and a run for it."""
    for name, value in s3.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SW_CHECKPOINT_BUCKET", CHECKPOINTS)
    monkeypatch.setenv("SOAL_RUN_KEY", f"test-{uuid.uuid4().hex}")
    monkeypatch.setenv("SOAL_RUN_ID", uuid.uuid4().hex)
    for name in ("SOAL_DEADLINE_EPOCH_MS", "SOAL_JOURNAL", "LAMBDA_TIMEOUT_MS", "AWS_LAMBDA_FUNCTION_NAME"):
        monkeypatch.delenv(name, raising=False)
    return Lake(s3.observer(), s3.endpoint, f"tables/{uuid.uuid4().hex}")


@pytest.fixture(params=CATALOGS)
def ice(spark: SparkSession, s3: EmbeddedS3, lake: Lake, request: pytest.FixtureRequest) -> Ice:
    """A table for this test with five rows, partitioned by a hidden column, in each kind of catalog."""
    catalog: Catalog = request.getfixturevalue(request.param)
    table = catalog.table(s3.observer())
    spark.sql(f"CREATE TABLE {table.name} {COLUMNS}")
    append(spark, table.name, 0, 5)
    return table
