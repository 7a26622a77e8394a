"""Scripts that more than one test runs."""

from __future__ import annotations

from tests.support.lake import LAKE

APPENDS = f"""
    from pyspark.sql import SparkSession
    spark = SparkSession.builder.getOrCreate()
    from safewriter import SafeWriter
    with SafeWriter(spark, "s3a://{LAKE}/appended") as sw:
        spark.range(3).write.format("delta").mode("append").save(sw.table)
        sw.success()
    """
