"""The features of the trimmed image: a table, tried one after the other in one Spark session.

As a script it is the job that tries them all and records how each ended; as a module it is the list of their names.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    Feature = Callable[[SparkSession, str], None]

FEATURES: dict[str, Feature] = {}
FULL: set[str] = set()
"""The names of features that only the variant full has."""


def feature(name: str) -> Callable[[Feature], Feature]:
    def take(function: Feature) -> Feature:
        FEATURES[name] = function
        return function

    return take


def full(name: str) -> Callable[[Feature], Feature]:
    """Declare a feature of the variant full."""
    FULL.add(name)
    return feature(name)


def rows(spark: SparkSession, count: int = 6) -> DataFrame:
    return spark.range(count).selectExpr("id", "id % 3 AS part", "concat('city ', id) AS city")


def equal(found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{found!r}, not {wanted!r}")


def of_format(name: str, **options: str) -> Feature:
    def run(spark: SparkSession, place: str) -> None:
        schema = "id long, part long, city string"
        rows(spark).write.format(name).options(**options).save(place)
        equal(spark.read.format(name).options(**options).schema(schema).load(place).count(), 6)

    return run


def of_codec(name: str, codec: str) -> Feature:
    def run(spark: SparkSession, place: str) -> None:
        rows(spark).write.format(name).option("compression", codec).save(place)
        equal(spark.read.format(name).load(place).count(), 6)

    return run


for _name, _options in (
    ("csv", {"header": "true"}),
    ("json", {}),
    ("parquet", {}),
    ("orc", {}),
    ("xml", {"rowTag": "row"}),
    ("delta", {}),
):
    if _name != "delta":
        FEATURES[f"format {_name}"] = of_format(_name, **_options)
for _name, _codecs in (
    ("parquet", ("snappy", "zstd", "gzip", "lz4_raw", "none")),
    ("orc", ("zstd", "snappy", "zlib", "lz4")),
    ("json", ("gzip", "bzip2", "deflate", "lz4")),
):
    for _codec in _codecs:
        FEATURES[f"codec {_name} {_codec}"] = of_codec(_name, _codec)


@feature("format text and binaryFile")
def text(spark: SparkSession, place: str) -> None:
    rows(spark).select("city").write.text(place)
    equal(spark.read.text(place).count(), 6)
    equal(spark.read.format("binaryFile").load(f"{place}/part-*").count() > 0, wanted=True)


def delta(spark: SparkSession, place: str, properties: str = "") -> str:
    table = f"delta.`{place}`"
    clause = f" TBLPROPERTIES ({properties})" if properties else ""
    spark.sql(f"CREATE TABLE {table} (id BIGINT, part BIGINT, city STRING) USING delta{clause}")
    rows(spark).write.format("delta").mode("append").save(place)
    return table


def delta_statement(statement: str, left: int, properties: str = "") -> Feature:
    def run(spark: SparkSession, place: str) -> None:
        table = delta(spark, place, properties)
        rows(spark).createOrReplaceTempView("batch")
        spark.sql(statement.format(table=table)).collect()
        equal(spark.read.format("delta").load(place).count(), left)

    return run


MERGE = (
    "MERGE INTO {table} t USING (SELECT id + 3 AS id, part, city FROM batch) s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET city = s.city WHEN NOT MATCHED THEN INSERT *"
)
VECTORS = "'delta.enableDeletionVectors' = 'true'"
for _name, _statement, _left, _properties in (
    ("MERGE", MERGE, 9, ""),
    ("UPDATE", "UPDATE {table} SET city = 'x' WHERE id < 2", 6, ""),
    ("DELETE", "DELETE FROM {table} WHERE id < 2", 4, ""),
    ("DELETE with deletion vectors", "DELETE FROM {table} WHERE id < 2", 4, VECTORS),
    ("OPTIMIZE ZORDER", "OPTIMIZE {table} ZORDER BY (id)", 6, ""),
    ("OPTIMIZE of a clustered table", "ALTER TABLE {table} CLUSTER BY (id)", 6, ""),
    ("VACUUM", "VACUUM {table} RETAIN 1000 HOURS", 6, ""),
    ("RESTORE", "RESTORE {table} TO VERSION AS OF 0", 0, ""),
    ("DESCRIBE HISTORY", "DESCRIBE HISTORY {table}", 6, ""),
    ("DESCRIBE DETAIL", "DESCRIBE DETAIL {table}", 6, ""),
    ("column mapping", "ALTER TABLE {table} RENAME COLUMN city TO town", 6, "'delta.columnMapping.mode' = 'name'"),
    ("constraint", "ALTER TABLE {table} ADD CONSTRAINT low CHECK (id < 100)", 6, ""),
    ("overwrite", "INSERT OVERWRITE {table} SELECT * FROM batch WHERE id = 1", 1, ""),
):
    FEATURES[f"Delta {_name}"] = delta_statement(_statement, _left, _properties)


@feature("Delta time travel")
def time_travel(spark: SparkSession, place: str) -> None:
    delta(spark, place)
    equal(spark.read.format("delta").option("versionAsOf", 0).load(place).count(), 0)


@feature("Delta change data feed")
def change_feed(spark: SparkSession, place: str) -> None:
    table = delta(spark, place, "'delta.enableChangeDataFeed' = 'true'")
    spark.sql(f"UPDATE {table} SET city = 'x' WHERE id = 1")
    feed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(place)
    equal(feed.where("_change_type = 'update_postimage'").count(), 1)


@feature("Delta schema evolution")
def evolution(spark: SparkSession, place: str) -> None:
    delta(spark, place)
    wider = rows(spark).selectExpr("*", "1 AS more")
    wider.write.format("delta").mode("append").option("mergeSchema", "true").save(place)
    equal(spark.read.format("delta").load(place).columns[-1], "more")


@feature("Delta checkpoint and reading it")
def checkpoint(spark: SparkSession, place: str) -> None:
    delta(spark, place, "'delta.checkpointInterval' = '2'")
    for _ in range(3):
        rows(spark).write.format("delta").mode("append").save(place)
    equal(spark.read.format("delta").load(place).count(), 24)


@feature("Delta from Python (DeltaTable)")
def delta_table(spark: SparkSession, place: str) -> None:
    from delta.tables import DeltaTable

    delta(spark, place)
    DeltaTable.forPath(spark, place).delete("id = 1")
    equal(DeltaTable.forPath(spark, place).toDF().count(), 5)


def iceberg(spark: SparkSession, place: str) -> str:
    for key, value in {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": place}.items():
        spark.conf.set(f"spark.sql.catalog.{place.rsplit('/', 1)[-1]}{key}", value)
    name = f"{place.rsplit('/', 1)[-1]}.db.t"
    rows(spark).writeTo(name).using("iceberg").create()
    return name


def iceberg_statement(statement: str, left: int) -> Feature:
    def run(spark: SparkSession, place: str) -> None:
        name = iceberg(spark, place)
        rows(spark).createOrReplaceTempView("batch")
        catalog = name.split(".")[0]
        spark.sql(statement.format(table=name, catalog=catalog)).collect()
        equal(spark.table(name).count(), left)

    return run


for _name, _statement, _left in (
    ("append", "INSERT INTO {table} SELECT * FROM batch", 12),
    ("MERGE", MERGE, 9),
    ("UPDATE", "UPDATE {table} SET city = 'x' WHERE id < 2", 6),
    ("DELETE", "DELETE FROM {table} WHERE id < 2", 4),
    ("rewrite_data_files", "CALL {catalog}.system.rewrite_data_files('db.t')", 6),
    ("expire_snapshots", "CALL {catalog}.system.expire_snapshots('db.t')", 6),
    ("remove_orphan_files", "CALL {catalog}.system.remove_orphan_files(table => 'db.t', dry_run => true)", 6),
    ("branch", "ALTER TABLE {table} CREATE BRANCH audit", 6),
    ("partition evolution", "ALTER TABLE {table} ADD PARTITION FIELD bucket(4, id)", 6),
    ("metadata tables", "SELECT * FROM {table}.snapshots", 6),
):
    FEATURES[f"Iceberg {_name}"] = iceberg_statement(_statement, _left)


def streaming(source: str) -> Feature:
    def run(spark: SparkSession, place: str) -> None:
        rows(spark).write.format(source).save(f"{place}/in")
        reader = spark.readStream.schema(rows(spark).schema) if source != "delta" else spark.readStream
        counted = reader.format(source).load(f"{place}/in").groupBy("part").count()
        query = (
            counted.writeStream.format("delta")
            .outputMode("complete")
            .option("checkpointLocation", f"{place}/state")
            .trigger(availableNow=True)
            .start(f"{place}/out")
        )
        query.awaitTermination()
        equal(spark.read.format("delta").load(f"{place}/out").count(), 3)

    return run


for _source in ("parquet", "delta"):
    FEATURES[f"streaming from {_source}, with state"] = streaming(_source)


@feature("streaming foreachBatch")
def foreach_batch(spark: SparkSession, place: str) -> None:
    rows(spark).write.parquet(f"{place}/in")
    seen: list[int] = []
    stream = spark.readStream.schema(rows(spark).schema).parquet(f"{place}/in")
    writer = stream.writeStream.foreachBatch(lambda frame, _number: seen.append(frame.count()))
    writer.option("checkpointLocation", f"{place}/state").trigger(availableNow=True).start().awaitTermination()
    equal(sum(seen), 6)


@feature("Python UDF")
def python_udf(spark: SparkSession, place: str) -> None:
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    twice = F.udf(lambda number: 2 * number, "long")
    equal(spark.range(4).select(twice("id").alias("id")).agg({"id": "sum"}).first()[0], 12)  # type: ignore[index]


@feature("Python UDTF")
def python_udtf(spark: SparkSession, place: str) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    class Count:
        def eval(self, number: int) -> Any:
            for one in range(number):
                yield (one,)

    spark.udtf.register("numbers", F.udtf(Count, returnType="n int"))  # type: ignore[arg-type]
    equal(spark.sql("SELECT * FROM numbers(3)").count(), 3)


@feature("RDD")
def rdd(spark: SparkSession, place: str) -> None:
    pairs = spark.sparkContext.parallelize(range(6), 2).map(lambda number: (number % 2, number))
    equal(sorted(pairs.reduceByKey(lambda a, b: a + b).collect()), [(0, 6), (1, 9)])


@feature("broadcast and accumulator")
def broadcast(spark: SparkSession, place: str) -> None:
    shared, total = spark.sparkContext.broadcast({1: 10}), spark.sparkContext.accumulator(0)
    spark.sparkContext.parallelize([1, 1]).foreach(lambda key: total.add(shared.value[key]))
    equal(total.value, 20)


def expression(sql: str, wanted: object) -> Feature:
    def run(spark: SparkSession, place: str) -> None:
        equal(spark.sql(f"SELECT {sql}").first()[0], wanted)  # type: ignore[index]

    return run


for _name, _sql, _wanted in (
    ("collation", "'SoAL' COLLATE UNICODE_CI = 'soal'", True),
    ("collation of a language", "'ä' COLLATE de < 'z' COLLATE de", True),
    ("variant", "variant_get(parse_json('{\"a\": 1}'), '$.a', 'int')", 1),
    ("aes_encrypt", "cast(aes_decrypt(aes_encrypt('a', '0000111122223333'), '0000111122223333') AS STRING)", "a"),
    ("from_json", "from_json('{\"a\": 1}', 'a int').a", 1),
    ("from_xml", "from_xml('<p><a>1</a></p>', 'a int').a", 1),
    ("from_csv", "from_csv('1,2', 'a int, b int').b", 2),
    ("regular expressions", "regexp_replace('abc', 'b.', 'x')", "ax"),
    ("time zones", "date_format(to_timestamp('2026-06-01 12:00:00'), 'yyyy HH')", "2026 12"),
    ("decimal", "cast(cast(1 AS DECIMAL(38, 10)) / 3 AS STRING)", "0.3333333333"),
    ("initcap and upper of any letters", "upper('straße')", "STRASSE"),
):
    FEATURES[f"SQL {_name}"] = expression(_sql, _wanted)


FEATURES["SQL sketches"] = expression(
    "hll_sketch_estimate(hll_sketch_agg(id)) BETWEEN 900 AND 1100 FROM range(1000)", wanted=True
)


@feature("SQL window, pivot, cube")
def shapes(spark: SparkSession, place: str) -> None:
    rows(spark).createOrReplaceTempView("shapes")
    equal(spark.sql("SELECT rank() OVER (PARTITION BY part ORDER BY id) FROM shapes").count(), 6)
    equal(rows(spark).groupBy("part").pivot("id", [1, 2]).count().count(), 3)
    equal(rows(spark).cube("part").count().count(), 4)


@feature("cache, checkpoint, broadcast join")
def kept(spark: SparkSession, place: str) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    spark.sparkContext.setCheckpointDir(f"{place}/checkpoints")
    frame = rows(spark).cache().checkpoint()
    equal(frame.join(F.broadcast(rows(spark).select("id")), "id").count(), 6)


@feature("catalog and temporary views")
def catalog(spark: SparkSession, place: str) -> None:
    spark.sql(f"CREATE TABLE kept_here (id BIGINT) USING parquet LOCATION '{place}'")
    equal([table.name for table in spark.catalog.listTables() if not table.isTemporary], ["kept_here"])
    spark.sql("DROP TABLE kept_here")


full("format avro")(of_format("avro"))


@full("pandas functions over 500,000 rows")
def pandas_functions(spark: SparkSession, place: str) -> None:
    import pandas as pd  # type: ignore[import-untyped]
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.pandas.functions import PandasUDFType, pandas_udf

    twice: Any = pandas_udf(lambda column: 2 * column, "long", PandasUDFType.SCALAR)
    frame = spark.range(500_000)
    equal(frame.select(twice("id").alias("id")).agg(F.sum("id")).first()[0], 499_999 * 500_000)  # type: ignore[index]
    largest = frame.groupBy((F.col("id") % 4).alias("part")).applyInPandas(
        lambda part: pd.DataFrame({"id": [part["id"].max()]}), "id long"
    )
    equal(sorted(row.id for row in largest.collect()), [499_996, 499_997, 499_998, 499_999])


@full("toPandas, and back, through Arrow")
def arrow(spark: SparkSession, place: str) -> None:
    spark.conf.set("spark.sql.execution.arrow.pyspark.fallback.enabled", "false")
    found = rows(spark).toPandas()
    equal(len(found), 6)
    equal(spark.createDataFrame(found).count(), 6)
    equal(rows(spark).toArrow().num_rows, 6)
    equal(rows(spark).mapInArrow(lambda batches: batches, rows(spark).schema).count(), 6)


@full("pandas on Spark")
def pandas_on_spark(spark: SparkSession, place: str) -> None:
    import pyspark.pandas as ps

    equal(int(ps.DataFrame({"id": [1, 2, 3]})["id"].sum()), 6)


@full("an MLlib pipeline, saved and loaded")
def pipeline(spark: SparkSession, place: str) -> None:
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.feature import StringIndexer, VectorAssembler

    frame = rows(spark, 40).selectExpr("*", "cast(id >= 20 AS int) AS label")
    stages: Any = [
        StringIndexer(inputCol="city", outputCol="place"),
        VectorAssembler(inputCols=["id", "place"], outputCol="features"),
        LogisticRegression(),
    ]
    Pipeline(stages=stages).fit(frame).save(place)
    equal(PipelineModel.load(place).transform(frame).where("prediction = label").count(), 40)


@full("clusters, trees, recommendations and topics of MLlib")
def models(spark: SparkSession, place: str) -> None:
    from pyspark.ml.classification import RandomForestClassifier
    from pyspark.ml.clustering import LDA, KMeans
    from pyspark.ml.feature import VectorAssembler
    from pyspark.ml.recommendation import ALS

    frame = VectorAssembler(inputCols=["id", "part"], outputCol="features").transform(rows(spark, 30))
    equal(len(KMeans(k=2, seed=1).fit(frame).clusterCenters()), 2)
    forest = RandomForestClassifier(labelCol="part", numTrees=3, seed=1).fit(frame)
    equal(forest.transform(frame).count(), 30)
    ratings = rows(spark, 30).selectExpr("id % 5 AS user", "part AS item", "cast(id % 4 AS float) AS rating")
    equal(ALS(rank=2, maxIter=2, seed=1).fit(ratings).itemFactors.count(), 3)
    equal(LDA(k=2, maxIter=2, seed=1).fit(frame).describeTopics().count(), 2)


@full("streaming with state in RocksDB")
def rocks_db(spark: SparkSession, place: str) -> None:
    provider = "spark.sql.streaming.stateStore.providerClass"
    spark.conf.set(provider, "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    try:
        streaming("parquet")(spark, place)
    finally:
        spark.conf.unset(provider)


@full("DStreams")
def dstreams(spark: SparkSession, place: str) -> None:
    from pyspark.streaming import StreamingContext

    context = StreamingContext(spark.sparkContext, 1)
    seen: list[int] = []
    context.queueStream([spark.sparkContext.parallelize([1, 2, 3])]).foreachRDD(lambda part: seen.append(part.count()))
    context.start()
    context.awaitTerminationOrTimeout(20)
    context.stop(stopSparkContext=False)
    equal(sum(seen), 3)


def main(place: str, variant: str) -> None:
    """Try all features of the variant; an error is recorded and does not end the job."""
    import boto3
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    found = {}
    tried = {name: function for name, function in FEATURES.items() if variant == "full" or name not in FULL}
    for number, (name, function) in enumerate(tried.items()):
        try:
            function(spark, f"{place}/f{number}")
            found[name] = "runs"
        except Exception as error:  # noqa: BLE001 - each row of the table is judged by itself
            found[name] = f"{type(error).__name__}: {str(error)[:1500]}"
        print(name, found[name][:150], flush=True)  # noqa: T201 - the log of a long job
    bucket, _, key = place.removeprefix("s3a://").partition("/")
    boto3.client("s3").put_object(Bucket=bucket, Key=f"{key}.json", Body=json.dumps(found).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
