"""Rows of one key, sorted by a real Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.snapshots.config import Duplicates, WriteConfig
from safewriter.snapshots.errors import ConfigValidationError, KeyRangeError
from safewriter.snapshots.read.reader import SnapshotReader
from safewriter.snapshots.write.build import write_sharded
from safewriter.snapshots.write.values import binary_col
from tests.support.lake import LAKE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("lake")]

CONFIG = WriteConfig(
    num_dbs=3, s3_prefix=f"s3://{LAKE}/snapshots/last", duplicates=Duplicates.LAST, last_by="changed`.at"
)


@pytest.mark.parametrize(
    "last",
    [
        "nullif(n, 0)",
        *(
            pytest.param(other, marks=pytest.mark.matrix)
            for other in ("n", "timestamp_seconds(n)", "lpad(n, 3, '0')", "double(n) / 7")
        ),
    ],
)
def test_the_last_row_of_each_key_stays(spark: SparkSession, last: str) -> None:
    """Keys are counted, not rows; rows of one key come in many batches."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
    try:
        frame = spark.range(500).selectExpr("id % 50 AS id", "id DIV 50 AS n").repartition(4)
        frame = frame.selectExpr("id", f"{last} AS `changed``.at`", "concat(id, ' ', n) AS v")
        result = write_sharded(frame, CONFIG, key_col="id", value_spec=binary_col("v"))
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert (result.stats.rows_read, result.stats.rows_written) == (500, 50)
    assert sum(shard.row_count for shard in result.shards) == 50
    with SnapshotReader(CONFIG.s3_prefix) as reader:
        assert reader.multi_get(list(range(50))) == {key: f"{key} 9".encode() for key in range(50)}


def test_a_last_row_that_is_not_one_fails_the_build(spark: SparkSession) -> None:
    """So does a column without an order, before anything is read."""
    frame = spark.range(20).selectExpr("id % 10 AS id", "1 AS `changed``.at`", "'v' AS v")
    with pytest.raises(KeyRangeError, match="and the highest value in last_by, 1"):
        write_sharded(frame, CONFIG, key_col="id", value_spec=binary_col("v"))
    frame = spark.range(20).selectExpr("id", "array(1) AS `changed``.at`", "'v' AS v")
    with pytest.raises(ConfigValidationError, match=r"of last_by has the type array<int>"):
        write_sharded(frame, CONFIG, key_col="id", value_spec=binary_col("v"))
