"""The example of a derived image: it holds the additions, and its archive is the base image's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.image.jobs import APPENDS

if TYPE_CHECKING:
    from tests.image.conftest import Cage

pytestmark = [pytest.mark.image, pytest.mark.slow]

ADDED = """
    import kazoo
    from pyspark.sql import SparkSession
    spark = SparkSession.builder.getOrCreate()
    source = spark.readStream.format("kafka").option("subscribe", "a").option("kafka.bootstrap.servers", "127.0.0.1:9")
    print(kazoo.__name__, source.load().columns)
    """


def test_what_is_added_is_there(cage: Cage) -> None:
    """The connector and the package exist; Java uses the archive, which does not cover the added jars."""
    with cage.function() as function:
        result = cage.run(function, ADDED)
    assert result.state == "SUCCESS", result.log_tail
    said = [line for line in result.log_tail if not line.startswith("WARN")]
    columns = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert said == [f"kazoo {columns}"]
    assert result.warnings == ()


def test_the_image_s_own_job_still_runs(cage: Cage) -> None:
    """A guarded append ends without a warning."""
    with cage.function() as function:
        result = cage.run(function, APPENDS)
    assert (result.state, result.warnings) == ("SUCCESS", ()), result.log_tail
