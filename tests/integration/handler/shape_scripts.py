"""Scripts in the shapes in which people publish PySpark jobs. The first argument is the folder of the job's data."""

from __future__ import annotations

TEMPLATE = """
import argparse
import logging
import sys
from datetime import date

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
log = logging.getLogger("daily")


def main():
    parser = argparse.ArgumentParser(description="The rows of one day")
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--day", type=date.fromisoformat, default=date.today())
    args = parser.parse_args()
    spark = SparkSession.builder.appName("daily").getOrCreate()
    frame = spark.read.option("header", True).schema("id INT, day DATE, price DOUBLE").csv(args.source)
    frame = frame.where(F.col("day") == F.lit(args.day)).cache()
    frame.write.mode("overwrite").parquet(args.target)
    log.info("%d rows of %s", frame.count(), args.day)
    return 0


if __name__ == "__main__":
    sys.exit(main())
"""
WORDS = """
import sys
from operator import add
from pyspark import SparkConf, SparkContext
from pyspark.sql import SQLContext

sc = SparkContext(conf=SparkConf().setAppName("words"))
sc.setLogLevel("WARN")
words = sc.textFile(f"{sys.argv[1]}/in/*.txt").flatMap(lambda line: line.split(" "))
counts = words.map(lambda word: (word, 1)).reduceByKey(add).sortBy(lambda pair: (-pair[1], pair[0]))
counts.map(lambda pair: f"{pair[0]}: {pair[1]}").coalesce(1).saveAsTextFile(f"{sys.argv[1]}/counts")
SQLContext(sc).createDataFrame(counts, "word STRING, count INT").show()
sc.stop()
"""
REPORT = """
import sys
import boto3
from pyspark.sql import SparkSession, Window
from pyspark.sql.functions import broadcast, col, round, row_number, sum

place = sys.argv[1]
spark = (
    SparkSession.builder.appName("report")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.sql.session.timeZone", "Europe/Vienna")
    .getOrCreate()
)
orders = spark.read.csv(f"{place}/orders.csv", header=True, inferSchema=True)
newest = Window.partitionBy("id").orderBy(col("changed").desc())
orders = orders.withColumn("nth", row_number().over(newest)).where("nth = 1").drop("nth")
customers = spark.read.json(f"{place}/customers.json")
joined = orders.join(broadcast(customers), "customer", "left")
report = joined.groupBy("country").agg(round(sum("amount"), 2).alias("sum")).orderBy("country")
report.coalesce(1).write.mode("overwrite").option("header", True).csv(f"{place}/report")

s3 = boto3.client("s3")
bucket, prefix = place.removeprefix("s3a://").split("/", 1)
listed = s3.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/report/part-")["Contents"]
assert len(listed) == 1
s3.copy_object(Bucket=bucket, Key=f"{prefix}/report.csv", CopySource={"Bucket": bucket, "Key": listed[0]["Key"]})
"""
NESTED = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, explode, explode_outer

spark = SparkSession.builder.getOrCreate()
orders = spark.read.option("multiLine", True).json(f"{sys.argv[1]}/orders.json")
lines = orders.select("id", col("customer.city").alias("city"), explode("lines").alias("line"))
flat = lines.select("id", "city", "line.sku", explode_outer("line.tags").alias("tag"))
flat.write.mode("overwrite").json(f"{sys.argv[1]}/flat")
"""
PARTITIONS = """
import sys
from pyspark.sql import SparkSession

place = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
frame = spark.read.csv(f"{place}/new.csv", header=True)
frame.write.mode("overwrite").partitionBy("day").parquet(f"{place}/days")
"""
PATHS = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql.functions import input_file_name

place = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
for paths in (
    f"{place}/2026-*/*.csv",
    f"{place}/2026-1[12]/{{a,b}}.csv".replace("s3a://", "s3://"),
    [f"{place}/2026-11/a.csv", f"{place}/2026-12/b.csv".replace("s3a://", "s3://")],
):
    frame = spark.read.csv(paths, header=True).withColumn("file", input_file_name())
    print("READ", *sorted(f"{row.id}={row.file.split('/', 4)[4]}" for row in frame.collect()))
"""
STOPS = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("stops").getOrCreate()
try:
    spark.range(3).write.mode("overwrite").parquet(f"{sys.argv[1]}/out")
finally:
    spark.stop()
print("stopped")
"""
HISTORY = """
import sys
from pyspark.sql import SparkSession
from safewriter import SafeWriter

place = sys.argv[1]
table = f"delta.`{place}/rooms`"
spark = SparkSession.builder.getOrCreate()
columns = "id INT, city STRING, since DATE, until DATE, is_current BOOLEAN"
spark.sql(f"CREATE TABLE IF NOT EXISTS {table} ({columns}) USING delta")
spark.read.schema("id INT, city STRING, day DATE").csv(f"{place}/new.csv", header=True).createOrReplaceTempView("news")
with SafeWriter(spark, f"{place}/rooms") as sw:
    spark.sql(f'''
        MERGE INTO {table} t
        USING (
            SELECT id AS merge_id, * FROM news
            UNION ALL
            SELECT NULL AS merge_id, n.* FROM news n JOIN {table} o ON o.id = n.id
            WHERE o.is_current AND o.city <> n.city
        ) s
        ON t.id = s.merge_id AND t.is_current
        WHEN MATCHED AND t.city <> s.city THEN UPDATE SET is_current = false, until = s.day
        WHEN NOT MATCHED THEN INSERT (id, city, since, until, is_current) VALUES (s.id, s.city, s.day, NULL, true)
    ''')
    sw.success()
"""
STREAM = """
import sys
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from safewriter import SafeWriter

place = sys.argv[1]
spark = SparkSession.builder.getOrCreate()


def upsert(batch, number):
    with SafeWriter(batch.sparkSession, f"{place}/rooms") as sw:
        target = DeltaTable.forPath(batch.sparkSession, sw.table).alias("t")
        merge = target.merge(batch.alias("s"), "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        sw.success()


empty = DeltaTable.createIfNotExists(spark).location(f"{place}/rooms")
empty.addColumn("id", "INT").addColumn("city", "STRING").execute()
files = spark.readStream.schema("id INT, city STRING").option("header", True).csv(f"{place}/in")
query = files.writeStream.foreachBatch(upsert).option("checkpointLocation", f"{place}/state")
query.trigger(availableNow=True).start().awaitTermination()
"""
CREATES = """
import sys
from pyspark.sql import SparkSession
from safewriter import SafeWriter

place, name = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
spark.read.csv(f"{place}/new.csv", header=True, inferSchema=True).createOrReplaceTempView("news")
cities = "SELECT city, count(*) AS rooms FROM news GROUP BY city"
with SafeWriter(spark, f"{place}/cities") as sw:
    spark.sql(f"CREATE TABLE cities USING delta LOCATION '{sw.table}' AS {cities}")
    sw.success()
spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
spark.sql(f"CREATE TABLE {name} USING iceberg AS {cities}")
"""
THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pyspark.sql import SparkSession
from safewriter import SafeWriter

place = sys.argv[1]
spark = SparkSession.builder.getOrCreate()


def load(name):
    session = spark.newSession()
    frame = session.read.csv(f"{place}/{name}.csv", header=True, inferSchema=True)
    with SafeWriter(session, f"{place}/{name}") as sw:
        frame.write.format("delta").mode("append").save(sw.table)
        sw.success()


with ThreadPoolExecutor(3) as pool:
    list(pool.map(load, sys.argv[2:]))
"""
STEPS = """
import sys
from pyspark.sql import SparkSession
from safewriter import SafeWriter

place = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
frame = spark.read.schema("id INT, city STRING").csv(f"{place}/new.csv", header=True).cache()
count = frame.count()
with SafeWriter(spark, f"{place}/rooms") as sw:
    frame.write.format("delta").mode("append").save(sw.table)
    sw.success()
for step in ("loaded", "checked"):
    with SafeWriter(spark, f"{place}/audit", step=step) as sw:
        line = spark.createDataFrame([(step, count)], "step STRING, count LONG")
        line.write.format("delta").mode("append").save(sw.table)
        sw.success()
"""
LATE_COLUMN = """
import sys
from pyspark.sql import SparkSession
from safewriter import SafeWriter

place = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
frame = spark.read.csv(f"{place}/new.csv", header=True, inferSchema=True)
with SafeWriter(spark, f"{place}/rooms") as sw:
    frame.write.format("delta").mode("append").option("mergeSchema", "true").save(sw.table)
    sw.success()
"""
ICEBERG = """
import sys
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr
from safewriter import SafeWriter

place, name = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
spark.sql(f"CREATE TABLE IF NOT EXISTS {name} (id INT, city STRING) USING iceberg")
news = spark.read.schema("id INT, city STRING").csv(f"{place}/new.csv", header=True)
news.createOrReplaceTempView("news")
with SafeWriter(spark, name, format="iceberg", step="replace") as sw:
    spark.sql(f"DELETE FROM {sw.table} WHERE id IN (SELECT id FROM news)")
    news.writeTo(sw.table).append()
    sw.success()
more = spark.createDataFrame([(2, "Rome"), (3, "Oslo")], "id INT, city STRING")
with SafeWriter(spark, name, format="iceberg", step="upsert") as sw:
    merge = more.alias("s").mergeInto(sw.table, expr(f"{sw.table}.id = s.id"))
    merge.whenMatched().updateAll().whenNotMatched().insertAll().merge()
    sw.success()
"""
