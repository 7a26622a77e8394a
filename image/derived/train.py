"""Train the archive of the derived image: the image's own lessons, and Avro."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import lessons

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read_avro(spark: SparkSession, lake: str) -> None:
    """Write and read."""
    spark.range(5).write.format("avro").save(f"{lake}/avro")
    spark.read.format("avro").load(f"{lake}/avro").collect()


if __name__ == "__main__":
    lessons.LESSONS = (*lessons.LESSONS, read_avro)
    lessons.main(sys.argv[1])
