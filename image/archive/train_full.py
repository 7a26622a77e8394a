"""Train the class-data archive of the variant full: the lessons of every job, and those of its additional packages."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pandas as pd  # noqa: TC002 - PySpark reads the annotations of its functions
import train
from pyspark.sql import functions as F  # noqa: N812 - its usual name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read_avro(spark: SparkSession, lake: str) -> None:
    """Write and read."""
    spark.range(5).write.format("avro").save(f"{lake}/avro")
    spark.read.format("avro").load(f"{lake}/avro").collect()


def use_pandas(spark: SparkSession, lake: str) -> None:  # noqa: ARG001 - every lesson takes both
    """Run a function of columns, a function of groups, and conversions of frames, through Arrow."""

    @F.pandas_udf("long")
    def twice(column: pd.Series) -> pd.Series:
        return 2 * column

    frame = spark.range(5).select(twice("id").alias("id"), (F.col("id") % 2).alias("odd"))
    frame.groupBy("odd").applyInPandas(lambda group: group.head(1), frame.schema).collect()
    spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", value=True)
    spark.createDataFrame(frame.toPandas()).collect()


def fit_pipeline(spark: SparkSession, lake: str) -> None:
    """Make features, train, evaluate, save and load a model."""
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.evaluation import BinaryClassificationEvaluator
    from pyspark.ml.feature import StandardScaler, StringIndexer, VectorAssembler

    rows = spark.range(20).selectExpr(
        "id", "cast(id % 3 AS double) AS size", "concat('c', id % 4) AS city", "id % 2 AS label"
    )
    stages = [
        StringIndexer(inputCol="city", outputCol="place"),
        VectorAssembler(inputCols=["size", "place"], outputCol="raw"),
        StandardScaler(inputCol="raw", outputCol="features"),
        LogisticRegression(maxIter=2),
    ]
    Pipeline(stages=stages).fit(rows).write().overwrite().save(f"{lake}/model")
    scored = PipelineModel.load(f"{lake}/model").transform(rows)
    BinaryClassificationEvaluator().evaluate(scored)


def stream_with_state(spark: SparkSession, lake: str) -> None:
    """Run a streaming count with its state in RocksDB."""
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    spark.range(5).write.parquet(f"{lake}/stream/in")
    counts = spark.readStream.schema("id long").parquet(f"{lake}/stream/in").groupBy(F.col("id") % 2).count()
    writer = counts.writeStream.format("noop").outputMode("update").trigger(availableNow=True)
    writer.option("checkpointLocation", f"{lake}/stream/state").start().awaitTermination()
    spark.conf.unset("spark.sql.streaming.stateStore.providerClass")


if __name__ == "__main__":
    train.LESSONS = (*train.LESSONS, read_avro, use_pandas, fit_pipeline, stream_with_state)
    train.main(sys.argv[1])
