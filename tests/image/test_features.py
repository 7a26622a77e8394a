"""Each row of the table of features on the trimmed image; a missing feature's error names the remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from handler.spark.missing_dependencies import read_missing
from soal.source_paths import MISSING
from tests.image.features import FEATURES, FULL
from tests.support.lake import LAKE

if TYPE_CHECKING:
    from soal.testing.s3 import EmbeddedS3
    from tests.image.conftest import Cage

pytestmark = [pytest.mark.image, pytest.mark.slow, pytest.mark.timeout(1200)]

SESSION = "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n"
ABSENT = {
    "the RocksDB state store": SESSION
    + f"""
spark.conf.set("spark.sql.streaming.stateStore.providerClass",
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
spark.range(3).write.parquet("s3a://{LAKE}/rocks/in")
stream = spark.readStream.schema("id long").parquet("s3a://{LAKE}/rocks/in").groupBy("id").count().writeStream
stream.format("noop").outputMode("update").trigger(availableNow=True).option(
    "checkpointLocation", "s3a://{LAKE}/rocks/state").start().awaitTermination()
""",
    "Hive": "from pyspark.sql import SparkSession\n"
    "SparkSession.builder.enableHiveSupport().getOrCreate().sql('CREATE TABLE t (id INT) STORED AS ORC')",
    "MLlib": SESSION + "from pyspark.ml.feature import VectorAssembler\nVectorAssembler(inputCols=['id'])",
    "Spark Connect": "from pyspark.sql.connect.session import SparkSession\n"
    "SparkSession.builder.remote('local').getOrCreate()",
    "DStreams": SESSION + "from pyspark.streaming import StreamingContext\nStreamingContext(spark.sparkContext, 1)",
    "the Avro format": SESSION + f"spark.range(1).write.format('avro').save('s3a://{LAKE}/avro')",
    "the Kafka connector": SESSION
    + "spark.readStream.format('kafka').option('subscribe', 'a').option('kafka.bootstrap.servers', 'h:1').load()",
    "HDFS": SESSION + "spark.read.text('hdfs://localhost:1/a').count()",
    "file systems other than S3 and the local disk": SESSION + "spark.read.text('http://localhost:1/a').count()",
    "the drivers of PostgreSQL and MySQL": SESSION
    + f"""
for key, value in {{"": "org.apache.iceberg.spark.SparkCatalog", ".warehouse": "s3a://{LAKE}/w", ".type": "jdbc",
        ".uri": "jdbc:postgresql://127.0.0.1:9/lake"}}.items():
    spark.conf.set(f"spark.sql.catalog.j{{key}}", value)
spark.sql("SHOW NAMESPACES IN j").collect()
""",
    "the driver of this SQL database": SESSION
    + "spark.read.format('jdbc').option('url', 'jdbc:oracle:thin:@127.0.0.1:9/x').option('dbtable', 't').load()",
    "pandas, NumPy and PyArrow": SESSION + "spark.range(1).toPandas()",
    "the AWS clients in Java that Iceberg's Glue catalog and its S3FileIO need": SESSION
    + f"""
for key, value in {{"": "org.apache.iceberg.spark.SparkCatalog", ".warehouse": "s3a://{LAKE}/w",
        ".catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog"}}.items():
    spark.conf.set(f"spark.sql.catalog.g{{key}}", value)
spark.sql("SHOW NAMESPACES IN g").collect()
""",
}


@pytest.fixture(scope="module")
def found(cage: Cage, lake: EmbeddedS3, variant: str) -> dict[str, str]:
    """Try all features in one job."""
    script = Path(__file__).with_name("features.py").read_text(encoding="utf-8")
    with cage.function(timeout_s=900, memory_mb=3008) as function:
        result = cage.run(function, script, entryPointArguments=[f"s3a://{LAKE}/features", variant])
    assert result.state == "SUCCESS", result.log_tail
    body = lake.observer().get_object(Bucket=LAKE, Key="features.json")["Body"].read()
    return dict(json.loads(body))


ELSEWHERE = frozenset(row.what for row in read_missing(MISSING) if "full" in row.variants)
"""The features that only the variant full has."""


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_runs(found: dict[str, str], variant: str, name: str) -> None:
    """The feature works, on tables and files in S3."""
    if name in FULL and variant != "full":
        assert name not in found
        return
    assert found[name] == "runs"


@pytest.mark.parametrize("what", ABSENT)
def test_what_the_image_does_not_have_is_said_with_what_to_do(cage: Cage, variant: str, what: str) -> None:
    """The answer of a job that needs a missing feature begins with that sentence, unless the variant has it."""
    with cage.function() as function:
        result = cage.run(function, ABSENT[what])
    if variant == "full" and what in ELSEWHERE:
        assert result.error is None or result.error.type != "NotInImage", result.error.message
        return
    assert result.error is not None
    assert (result.state, result.error.type) == ("FAILED", "NotInImage"), (result.error.message, result.log_tail)
    assert result.error.message.startswith(f"the image does not have {what}: ")
    assert len(result.state_details.splitlines()) == 1
