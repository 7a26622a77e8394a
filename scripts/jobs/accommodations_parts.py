"""For demonstrations only: the guarded append in parts, one for each city, with a pause after each.

PAUSE_S is a variable of the function. If a run is longer than the timeout, its next attempt continues where it was.
"""

import argparse
import os
import time

from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from safewriter import parts

parser = argparse.ArgumentParser()
parser.add_argument("--source", required=True, help="s3a:// path of the CSV file")
parser.add_argument("--table", required=True, help="s3a:// path of the Delta table, or name of the Iceberg table")
parser.add_argument("--format", choices=["delta", "iceberg"], default="delta", help="the table's format")
args = parser.parse_args()

spark = SparkSession.builder.appName("accommodations-parts").getOrCreate()
rows = spark.read.csv(
    args.source, header=True, sep=";", quote='"', escape='"', multiLine=True, inferSchema=True
).cache()
cities = sorted(row[0] for row in rows.select("city").distinct().collect())

if args.format == "iceberg":
    # Quoted: an argument in a statement must be a name and nothing more.
    namespace = ".".join("`" + part.replace("`", "``") + "`" for part in args.table.split(".")[:-1])
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
    if not spark.catalog.tableExists(args.table):
        rows.limit(0).writeTo(args.table).using("iceberg").create()
for part in parts(spark, args.table, cities, format=args.format):
    batch = rows.where(col("city") == part.value)
    with part as sw:
        if args.format == "delta":
            batch.write.format("delta").mode("append").save(sw.table)
        else:
            batch.writeTo(sw.table).append()
        sw.success()
    print(f"{part.name} is written")
    time.sleep(float(os.environ.get("PAUSE_S", "0")))
