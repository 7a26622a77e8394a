"""The example of a derived image: what it adds is there, and its archive is the image's.

`soal image derive image/derived --tag soal-derived`, then `soal image test --tag soal-derived tests/image/derived`.
"""

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
    """The connector, the package; and Java takes the archive, of which the added jars are no part."""
    with cage.function() as function:
        result = cage.run(function, ADDED)
    assert result.state == "SUCCESS", result.log_tail
    said = [line for line in result.log_tail if not line.startswith("WARN")]
    columns = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert said == [f"kazoo {columns}"]
    assert result.warnings == ()


def test_the_image_s_own_job_still_runs(cage: Cage) -> None:
    """A guarded append, with nothing to remark."""
    with cage.function() as function:
        result = cage.run(function, APPENDS)
    assert (result.state, result.warnings) == ("SUCCESS", ()), result.log_tail
