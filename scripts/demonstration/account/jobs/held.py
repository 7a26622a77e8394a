"""The guarded append, which waits at one point: the object `--hold` names the point and the seconds.

It is an object and no argument, so that a retry without the pause is the same job. Points: `write`, before the second
of two files; `commit`, after the commit and before `success()`; `end`, after the block.
"""

import argparse
import time

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, spark_partition_id, udf

from safewriter import SafeWriter

parser = argparse.ArgumentParser()
parser.add_argument("--source", required=True, help="s3a:// path of the CSV file")
parser.add_argument("--table", required=True, help="s3a:// path of the Delta table")
parser.add_argument("--hold", required=True, help="s3a:// path of a text: POINT SECONDS")
args = parser.parse_args()

spark = SparkSession.builder.appName("held").getOrCreate()
point, seconds = spark.read.text(args.hold).collect()[0][0].split()
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


with SafeWriter(spark, args.table, format="delta") as sw:
    if sw.already_committed:
        print(f"{sw.table}: an earlier attempt of this run has committed this write")
    else:
        named = udf(late, "string", useArrow=False)(col("name"), spark_partition_id())
        frame.repartition(2).withColumn("name", named).write.format("delta").mode("append").save(sw.table)
        wait_at("commit")
    sw.success()
wait_at("end")
