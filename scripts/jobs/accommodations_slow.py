"""For demonstrations only: the guarded append in two parts, the second of which waits PAUSE_S seconds for its data.

PAUSE_S is a variable of the function, not an argument, so that a retry without the pause is the same job.
"""

import argparse
import os
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, spark_partition_id, udf

from safewriter import SafeWriter


def paused(frame: DataFrame, pause_s: float) -> DataFrame:
    """Return the same rows, but wait `pause_s` seconds before the first row of the second partition."""
    slept: list[bool] = []

    def wait(value: str | None, partition: int) -> str | None:
        if partition == 1 and not slept:
            slept.append(True)
            time.sleep(pause_s)
        return value

    return frame.repartition(2).withColumn(
        "name", udf(wait, "string", useArrow=False)(col("name"), spark_partition_id())
    )


parser = argparse.ArgumentParser()
parser.add_argument("--source", required=True, help="s3a:// path of the CSV file")
parser.add_argument("--table", required=True, help="s3a:// path of the Delta table, or name of the Iceberg table")
parser.add_argument("--format", choices=["delta", "iceberg"], default="delta", help="the table's format")
args = parser.parse_args()

spark = SparkSession.builder.appName("accommodations-slow").getOrCreate()
frame = spark.read.csv(args.source, header=True, sep=";", quote='"', escape='"', multiLine=True, inferSchema=True)

with SafeWriter(spark, args.table, format=args.format) as sw:
    if sw.already_committed:
        print(f"{sw.table}: an earlier attempt of this run has committed this write")
    else:
        parts = paused(frame, float(os.environ.get("PAUSE_S", "0")))
        if args.format == "delta":
            parts.write.format("delta").mode("append").save(sw.table)
        else:
            parts.writeTo(sw.table).append()
    sw.success()
