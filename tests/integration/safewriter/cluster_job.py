"""The job of test_cluster, run as a driver of its own: `python cluster_job.py MASTER TABLE`."""

from __future__ import annotations

import os
import sys

from pyspark.sql import functions as F  # noqa: N812 - Spark's own name for it

from safewriter import SafeWriter
from tests.support.spark_session import build_session


def main(master: str, table: str) -> None:
    """Create, append, and fail in a task of the second wave; print each verdict."""
    settings = {"spark.executor.memory": "700m", "spark.cores.max": "2", "spark.task.maxFailures": "1"}
    spark = build_session(os.environ["AWS_ENDPOINT_URL_S3"], master, settings)
    frame = spark.range(0, 15, 1, 5).withColumn("part", F.col("id") % 2)
    fails = F.udf(lambda number: 1 // (number - 14), "long")
    verdicts = []
    for step, rows in (("create", frame), ("append", frame), ("fails", frame.withColumn("id", fails("id")))):
        block = SafeWriter(spark, table, step=step)
        try:
            with block:
                rows.write.format("delta").mode("append").partitionBy("part").save(block.table)
                block.success()
        except Exception as error:
            if "ZeroDivisionError" not in str(error):
                raise
        assert block.checkpoint is not None
        verdicts.append(f"{step} {block.checkpoint.status}")
    spark.stop()
    print("\n".join(verdicts), flush=True)  # noqa: T201 - how it talks to the test


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
