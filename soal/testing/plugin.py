"""Fixtures of pytest for the tests of PySpark jobs: an S3, a guarded session, a table, and jobs that are killed.

pytest loads this file wherever the package is installed, so it imports nothing that takes time.
"""

from __future__ import annotations

import os
import sys
import uuid
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from soal.testing.job import Jobs
    from soal.testing.s3 import EmbeddedS3

__all__ = ["pytest_addoption", "run_job", "soal_s3", "soal_settings", "soal_spark", "soal_table"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option that names jars."""
    parser.addini(
        "soal_jars",
        "paths or patterns of Spark's further jars (Delta, hadoop-aws and what they need); without it Spark fetches"
        " both from Maven Central",
        type="args",
        default=[],
    )


@pytest.fixture(scope="session")
def soal_s3() -> Iterator[EmbeddedS3]:
    """An S3 on a free port of this machine, with the buckets `lake` and `checkpoints`.

    `soal_s3.client()` is a boto3 client, and `soal_s3.wire.add(Rule(…))` makes it fail (`soal.testing.s3`).
    """
    from soal.testing.job import CHECKPOINTS, LAKE
    from soal.testing.s3 import EmbeddedS3

    with EmbeddedS3(buckets=(LAKE, CHECKPOINTS), unlistable=(CHECKPOINTS,)) as server:
        yield server


@pytest.fixture(scope="session")
def soal_settings(soal_s3: EmbeddedS3, pytestconfig: pytest.Config) -> dict[str, str]:
    """The Spark settings of `soal_spark` and of jobs. Override it to add some, such as an Iceberg catalog."""
    from soal.testing.session import session_settings

    patterns = pytestconfig.getini("soal_jars")
    jars = [Path(name) for pattern in patterns for name in sorted(glob(str(pattern)))]  # noqa: PTH207 - may be absolute
    if patterns and not jars:
        raise pytest.UsageError(f"soal_jars names no file: {' '.join(patterns)}")
    return session_settings(soal_s3.endpoint, jars)


@pytest.fixture(scope="session")
def soal_spark(soal_s3: EmbeddedS3, soal_settings: dict[str, str]) -> Iterator[SparkSession]:
    """A Spark session of this process, whose writes SafeWriter can guard, on `soal_s3`."""
    from pyspark.sql import SparkSession

    from soal.testing.job import CHECKPOINTS

    before = dict(os.environ)
    os.environ.update(soal_s3.environment(), PYSPARK_PYTHON=sys.executable, SW_CHECKPOINT_BUCKET=CHECKPOINTS)
    builder = SparkSession.builder.appName("soal-testing")
    for key, value in soal_settings.items():
        builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def soal_table() -> str:
    """The `s3a://` path of a table that is not there yet, another one for each test."""
    from soal.testing.job import LAKE

    return f"s3a://{LAKE}/{uuid.uuid4().hex}"


@pytest.fixture(scope="session")
def run_job(soal_s3: EmbeddedS3, soal_settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    """Run a script: `run_job("my_job.py", *arguments, run_key=…, deadline_s=…, kill_at=…)`, see `Jobs`."""
    from soal.testing.job import Jobs

    return Jobs(soal_s3, soal_settings, tmp_path_factory.mktemp("soal"))
