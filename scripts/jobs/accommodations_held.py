"""For demonstrations only: the guarded append, which waits at one point. A text names the point and the seconds.

The text is the object `--hold`, or the function's variable HOLD, and no argument, so that a retry without the pause is
the same job. Points: `write`, before the second of two files; `commit`, after the commit and before `success()`; `end`,
after the block.
"""

import argparse
import os
import time

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, spark_partition_id, udf

from safewriter import SafeWriter

parser = argparse.ArgumentParser()
parser.add_argument("--source", required=True, help="s3a:// path of the CSV file")
parser.add_argument("--table", required=True, help="s3a:// path of the Delta table, or name of the Iceberg table")
parser.add_argument("--format", choices=["delta", "iceberg"], default="delta", help="the table's format")
parser.add_argument("--hold", help="s3a:// path of a text: POINT SECONDS")
args = parser.parse_args()

spark = SparkSession.builder.appName("held").getOrCreate()
point, seconds = (spark.read.text(args.hold).collect()[0][0] if args.hold else os.environ["HOLD"]).split()
frame = spark.read.csv(args.source, header=True, sep=";", quote='"', escape='"', multiLine=True, inferSchema=True)
slept: list[bool] = []


def wait_at(here: str) -> None:
    """Wait here, if this is the point."""
    if here == point:
        time.sleep(float(seconds))


def late(value: str | None, partition: int) -> str | None:
    """Return the value; the first one of the second partition takes its time."""
    if partition == 1 and not slept:
        slept.append(True)
        wait_at("write")
    return value


with SafeWriter(spark, args.table, format=args.format) as sw:
    if sw.already_committed:
        print(f"{sw.table}: an earlier attempt of this run has committed this write")
    else:
        named = udf(late, "string", useArrow=False)(col("name"), spark_partition_id())
        parts = frame.repartition(2).withColumn("name", named)
        if args.format == "delta":
            parts.write.format("delta").mode("append").save(sw.table)
        else:
            parts.writeTo(sw.table).append()
        wait_at("commit")
    sw.success()
wait_at("end")
