"""Train the class-data archive: a job that uses the features of most jobs, so that the archive holds their classes.

A script like any other, run by the handler's own command (see scripts/image/training.py): `train.py s3a://BUCKET`.
LESSONS lists the features. If no lesson loads a class, Java reads it from its jar at run time, which is slower and
never wrong. The data is tiny on purpose: only the loaded classes count, not the speed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.types import DoubleType, IntegerType, StringType, StructField, StructType

from safewriter import SafeWriter

if TYPE_CHECKING:
    from collections.abc import Callable

_HEADER = StructType(
    [StructField("id", IntegerType()), StructField("city", StringType()), StructField("price", DoubleType())]
)
_ROWS = [(1, "Köln", 80.0), (2, "Roma", 120.5), (3, "Kyōto", None)]


def read_csv(spark: SparkSession, lake: str) -> None:
    """Read CSV with both parsers, with a schema and with an inferred one."""
    _rows(spark).write.mode("overwrite").csv(f"{lake}/csv", header=True)
    spark.read.csv(f"{lake}/csv", header=True, inferSchema=True).collect()
    lines = spark.read.csv(f"{lake}/csv", header=True, sep=",", quote='"', escape='"', multiLine=True, inferSchema=True)
    lines.filter("price > 100").count()


def read_json(spark: SparkSession, lake: str) -> None:
    """Read JSON lines, and JSON in a column."""
    _rows(spark).write.mode("overwrite").json(f"{lake}/json")
    frame = spark.read.json(f"{lake}/json")
    text = frame.select(F.to_json(F.struct("*")).alias("text"))
    text.select(F.from_json("text", _HEADER).alias("row")).select("row.*").collect()


def read_parquet(spark: SparkSession, lake: str) -> None:
    """Write Parquet in partitions, read it with a filter."""
    _rows(spark).write.mode("overwrite").partitionBy("city").parquet(f"{lake}/parquet")
    spark.read.parquet(f"{lake}/parquet").filter("id > 1").collect()
    spark.read.schema(_HEADER).parquet(f"{lake}/parquet").count()


def transform(spark: SparkSession, lake: str) -> None:  # noqa: ARG001 - every lesson takes both
    """Run joins, groups, windows, dates, arrays and strings, in Python and SQL."""
    rows = _rows(spark)
    rows.createOrReplaceTempView("rows")
    spark.sql(
        "WITH per AS (SELECT city, count(*) AS n, avg(price) AS mean, max(id) AS top FROM rows GROUP BY city)"
        " SELECT rows.*, per.n, row_number() OVER (PARTITION BY per.n ORDER BY id) AS place,"
        " date_add(date'2026-01-01', id) AS day, timestamp'2026-01-01 00:00:00' AS at, upper(rows.city) AS big,"
        " transform(array(id, 2), x -> x + 1) AS list, named_struct('a', id).a AS inner,"
        " CASE WHEN price IS NULL THEN 0 ELSE cast(price AS decimal(10, 2)) END AS paid"
        " FROM rows JOIN per ON rows.city = per.city ORDER BY id LIMIT 5"
    ).collect()
    window = Window.partitionBy("city").orderBy(F.desc("price"))
    pairs = rows.join(F.broadcast(rows.select("id", F.lit(1).alias("one"))), "id", "left")
    pairs.withColumn("rank", F.rank().over(window)).dropDuplicates(["city"]).na.fill(0).collect()
    rows.unionByName(rows).distinct().groupBy("city").agg(F.countDistinct("id"), F.sum("price")).collect()
    rows.repartition(2, "city").sortWithinPartitions("id").cache().count()
    rows.select(F.explode(F.array("id", "id")), F.sha2("city", 256), F.regexp_replace("city", "o", "0")).collect()
    rows.summary().collect()


def run_python(spark: SparkSession, lake: str) -> None:  # noqa: ARG001 - every lesson takes both
    """Run a Python function in a Python worker, and an RDD."""
    twice = F.udf(lambda value: value * 2, "int")
    _rows(spark).select(twice("id").alias("twice")).collect()
    spark.sparkContext.parallelize([1, 2, 3], 2).map(str).collect()


def append_delta(spark: SparkSession, lake: str) -> None:
    """The main job: guarded appends, the first of which creates the table; then reads."""
    table = f"{lake}/delta"
    for step in ("first", "second"):
        with SafeWriter(spark, table, step=step) as block:
            _rows(spark).write.format("delta").mode("append").save(block.table)
            block.success()
    spark.read.format("delta").load(table).filter("id = 2").collect()
    spark.read.format("delta").option("versionAsOf", 0).load(table).count()
    spark.sql(f"DESCRIBE HISTORY delta.`{table}`").collect()


def change_delta(spark: SparkSession, lake: str) -> None:
    """Run MERGE, UPDATE, DELETE and maintenance on a partitioned table."""
    from delta.tables import DeltaTable

    path = f"{lake}/delta_changed"
    _rows(spark).write.format("delta").partitionBy("city").mode("overwrite").save(path)
    table = DeltaTable.forPath(spark, path)
    merge = table.alias("old").merge(_rows(spark).withColumn("id", F.col("id") + 1).alias("new"), "old.id = new.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    table.update("id = 2", {"price": F.lit(1.0)})
    table.delete("id = 4")
    _rows(spark).withColumn("note", F.lit("new")).write.format("delta").mode("append").option(
        "mergeSchema", value=True
    ).save(path)
    table.optimize().executeCompaction()
    table.restoreToVersion(1)


def append_iceberg(spark: SparkSession, lake: str) -> None:
    """Run append, MERGE, UPDATE and DELETE on a table of a path catalog, and time travel."""
    settings = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": f"{lake}/iceberg"}
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.ice{key}", value)
    _rows(spark).writeTo("ice.db.rows").using("iceberg").create()
    _rows(spark).writeTo("ice.db.rows").append()
    _rows(spark).withColumn("id", F.col("id") + 1).createOrReplaceTempView("news")
    spark.sql(
        "MERGE INTO ice.db.rows o USING (SELECT id, first(city) AS city, first(price) AS price FROM news GROUP BY id) n"
        " ON o.id = n.id WHEN MATCHED THEN UPDATE SET price = n.price WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql("UPDATE ice.db.rows SET price = 1 WHERE id = 2")
    spark.sql("DELETE FROM ice.db.rows WHERE id = 4")
    snapshot = spark.sql("SELECT snapshot_id FROM ice.db.rows.snapshots ORDER BY committed_at").first()
    spark.read.option("versionAsOf", str(snapshot[0] if snapshot else 0)).table("ice.db.rows").collect()
    spark.sql(f"CALL ice.system.rollback_to_snapshot('db.rows', {snapshot[0] if snapshot else 0})")


LESSONS: tuple[Callable[[SparkSession, str], None], ...] = (
    read_csv,
    read_json,
    read_parquet,
    transform,
    run_python,
    append_delta,
    change_delta,
    append_iceberg,
)


def _rows(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(_ROWS, _HEADER)


def main(lake: str) -> None:
    """Run all lessons. An error ends the training: a failed lesson's classes would be missing from the archive."""
    spark = SparkSession.builder.getOrCreate()
    for lesson in LESSONS:
        lesson(spark, lake)
        print(f"trained: {lesson.__name__}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
