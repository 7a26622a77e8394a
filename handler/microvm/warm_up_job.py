"""The job of a warm-up: `warm_up_job.py ENDPOINT s3a://LAKE NUMBER [--lessons]`. The handler runs it as any script.

It leads its own Spark context to the S3 of the warm-up: the JVM, which stays, knows nothing of it.
"""

from __future__ import annotations

import os
import sys

__all__: list[str] = []


def main(endpoint: str, lake: str, number: str, *options: str) -> None:
    """Append guarded rows to a table of Delta and read them; with lessons, first use what most jobs use."""
    os.environ["AWS_ENDPOINT_URL_S3"] = endpoint
    from pyspark.sql import SparkSession

    from safewriter import SafeWriter

    spark = SparkSession.builder.getOrCreate()
    settings = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - no other way
    for key, value in {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
    }.items():
        settings.set(key, value)
    if "--lessons" in options:
        import train  # type: ignore[import-not-found] # a file of the job's own

        for lesson in train.LESSONS:
            lesson(spark, f"{lake}/lessons")
    with SafeWriter(spark, f"{lake}/rows", step="append") as block:
        spark.range(3).selectExpr("id", f"{number} AS number").write.format("delta").mode("append").save(block.table)
        block.success()
    spark.read.format("delta").load(f"{lake}/rows").filter("id > 0").count()


if __name__ == "__main__":
    main(*sys.argv[1:])
