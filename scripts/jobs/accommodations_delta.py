"""Append a CSV file of accommodations to a Delta table, guarded: the file lands whole, once, or not at all.

{"entryPoint": "s3://BUCKET/jobs/accommodations_delta.py", "clientToken": "2026-11-20",
 "entryPointArguments": ["--source", "s3a://BUCKET/accommodations.csv", "--table", "s3a://BUCKET/accommodations"]}
"""

import argparse

from pyspark.sql import SparkSession

from safewriter import SafeWriter

parser = argparse.ArgumentParser()
parser.add_argument("--source", required=True, help="s3a:// path of the CSV file")
parser.add_argument("--table", required=True, help="s3a:// path of the Delta table")
args = parser.parse_args()

spark = SparkSession.builder.appName("accommodations").getOrCreate()

# A quote inside of quotes is doubled in this file, and a backslash is only a backslash: Spark's default is the reverse.
frame = spark.read.csv(args.source, header=True, sep=";", quote='"', escape='"', multiLine=True, inferSchema=True)

with SafeWriter(spark, args.table, format="delta") as sw:
    if sw.already_committed:
        print(f"{sw.table}: an earlier attempt of this run has committed this write")
    else:
        frame.write.format("delta").mode("append").save(sw.table)
    sw.success()
