"""A batch of rows, and the block that appends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from safewriter import SafeWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.support.lake import Lake


def batch(spark: SparkSession, rows: int = 10) -> DataFrame:
    return spark.range(rows).withColumn("part", F.col("id") % 3)


def append(spark: SparkSession, lake: Lake, rows: int = 10, step: str | None = None) -> SafeWriter:
    with SafeWriter(spark, lake.table, step=step) as block:
        batch(spark, rows).write.format("delta").mode("append").save(block.table)
        block.success()
    return block
