"""Half a million rows, grouped, joined, hashed and written: 10 s and more. `scripts/lab bench start --job heavy`."""

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

ROWS = 500_000

parser = argparse.ArgumentParser()
parser.add_argument("--source", help="not used")
parser.add_argument("--table", required=True, help="s3a:// path of the Delta table")
args = parser.parse_args()

spark = SparkSession.builder.appName("heavy").getOrCreate()
rows = spark.range(ROWS).select(
    "id", (F.col("id") * 7919 % 5000).alias("key"), F.sha2(F.col("id").cast("string"), 256).alias("text")
)
groups = rows.groupBy("key").agg(
    F.count("*").alias("n"), F.countDistinct("text").alias("texts"), F.max("text").alias("top")
)
rows.join(groups, "key").withColumn("own", F.col("text") == F.col("top")).write.format("delta").save(args.table)
found = spark.read.format("delta").load(args.table).agg(F.count("*"), F.sum(F.col("own").cast("int"))).collect()
if tuple(found[0]) != (ROWS, 5000):
    raise RuntimeError(f"{found} is not what was written")
