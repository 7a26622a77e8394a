"""The guarded append to an Iceberg table that is there, which waits before `success()` publishes it.

The object `--hold` names the point `commit` and the seconds, as for `held.py`.
"""

import argparse
import time

from pyspark.sql import SparkSession

from safewriter import SafeWriter

parser = argparse.ArgumentParser()
parser.add_argument("--source", required=True, help="s3a:// path of the CSV file")
parser.add_argument("--table", required=True, help="name of the Iceberg table: catalog.namespace.table")
parser.add_argument("--hold", required=True, help="s3a:// path of a text: POINT SECONDS")
args = parser.parse_args()

spark = SparkSession.builder.appName("held").getOrCreate()
point, seconds = spark.read.text(args.hold).collect()[0][0].split()
frame = spark.read.csv(args.source, header=True, sep=";", quote='"', escape='"', multiLine=True, inferSchema=True)

with SafeWriter(spark, args.table, format="iceberg") as sw:
    if not sw.already_committed:
        frame.writeTo(sw.table).append()
        if point == "commit":
            time.sleep(float(seconds))
    sw.success()
