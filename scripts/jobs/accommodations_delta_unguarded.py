"""The same append without SafeWriter, for comparison: a kill can silently lose it, a retry can double it."""

import argparse

from pyspark.sql import SparkSession

parser = argparse.ArgumentParser()
parser.add_argument("--source", required=True, help="s3a:// path of the CSV file")
parser.add_argument("--table", required=True, help="s3a:// path of the Delta table")
args = parser.parse_args()

spark = SparkSession.builder.appName("accommodations").getOrCreate()
frame = spark.read.csv(args.source, header=True, sep=";", quote='"', escape='"', multiLine=True, inferSchema=True)
frame.write.format("delta").mode("append").save(args.table)
