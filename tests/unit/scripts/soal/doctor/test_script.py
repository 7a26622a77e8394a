from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pytest

from scripts.soal.doctor.script import IN_FULL, IN_IMAGE, examine_script

if TYPE_CHECKING:
    from pathlib import Path

    from scripts.soal.doctor.finding import Finding

# As scripts for aws-samples/spark-on-aws-lambda begin and end.
ELSEWHERE = """
import os
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.appName("job")
    .master("local[*]")
    .config("spark.driver.memory", "5g")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.jars.packages", "io.delta:delta-core_2.12:2.2.0")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .config("spark.hadoop.fs.s3a.access.key", os.environ["AWS_ACCESS_KEY_ID"])
    .enableHiveSupport()
    .getOrCreate()
)
frame = spark.read.option("header", "true").csv(os.environ["INPUT_PATH"])
frame.write.format("delta").mode("append").save("s3a://lake/t")
"""
WELL = """
from pyspark.sql import SparkSession
from safewriter import SafeWriter

spark = SparkSession.builder.appName("x").config("spark.sql.shuffle.partitions", "4").getOrCreate()
with SafeWriter(spark, "s3a://lake/t", format="delta") as sw:
    spark.range(3).write.format("delta").mode("append").save(sw.table)
    sw.success()
"""


def look(tmp_path: Path, text: str) -> list[Finding]:
    path = tmp_path / "job.py"
    path.write_text(text, encoding="utf-8")
    return list(examine_script(path))


def one(tmp_path: Path, text: str) -> Finding:
    (finding,) = look(tmp_path, text)
    return finding


def test_a_script_from_elsewhere(tmp_path: Path) -> None:
    """Each setting that will be ignored, each variable and the write without a guard, with its own line, in order."""
    found = look(tmp_path, ELSEWHERE)
    assert [(finding.name, finding.detail.split(",")[0]) for finding in found] == [
        ("job.py:7", "sets spark.master"),
        ("job.py:8", "sets spark.driver.memory"),
        ("job.py:10", "sets spark.jars.packages"),
        ("job.py:13", "sets spark.hadoop.fs.s3a.access.key"),
        ("job.py:14", "sets spark.sql.catalogImplementation"),
        ("job.py:17", "needs the variable INPUT_PATH"),
        ("job.py:18", "appends to or overwrites a Delta table"),
    ]
    assert {finding.status for finding in found} == {"warn"}
    assert all(finding.remedy for finding in found)


def test_a_script_that_is_well(tmp_path: Path) -> None:
    """One finding that says so."""
    assert one(tmp_path, WELL).status == "ok"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("from awsglue.utils import getResolvedOptions", "argparse"),
        ("frame.write.format('hudi').save('s3a://lake/t')", "use Delta"),
        ("spark.readStream.format('kafka').load()", "event source mapping"),
        ("frame.write.jdbc('jdbc:oracle:thin:@db', 't')", "export to S3"),
        ("spark.read.format('jdbc').option('url', address).load()", "variant full"),
        ("spark.read.csv('hdfs://namenode/x')", "s3a://"),
        ("sc._jsc.hadoopConfiguration().set('fs.s3a.endpoint', 'http://x')", "leave it out"),
        ("with SafeWriter(spark, 't') as sw:\n    f.write.format('delta').save(sw.table)", "call it last"),
        ("x = (", "correct it"),
    ],
)
def test_what_will_fail(tmp_path: Path, line: str, words: str) -> None:
    """Is a failure, and the remedy says what to do."""
    finding = one(tmp_path, line)
    assert (finding.status, finding.name) == ("fail", "job.py:1")
    assert words in finding.remedy


@pytest.mark.parametrize(
    "line",
    [
        "import pandas as pd",
        "import os, numpy.linalg",
        "from pyspark.ml.feature import VectorAssembler",
        "from pyspark import pandas",
        "frame.write.format('avro').save('s3a://lake/a')",
        "frame.write.jdbc('jdbc:postgresql://db', 't')",
    ],
)
def test_what_needs_the_full_image_says_so(tmp_path: Path, line: str) -> None:
    """The line fails on the slim one, and nothing is to change for the full one."""
    variant, failed = look(tmp_path, line)
    assert (failed.status, failed.name) == ("fail", "job.py:1")
    assert "full" in failed.remedy
    assert (variant.name, variant.status) == ("job.py", "warn")
    assert "the image's variant full" in variant.detail
    assert [found.status for found in examine_script(tmp_path / "job.py", "full")] == ["ok"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("import requests", "requests, which is not in the image"),
        ("SparkConf().setMaster('yarn')", "spark.master"),
        ("SparkSession.builder.config(map={'spark.executor.cores': 2})", "spark.executor.cores"),
        ("SparkConf().setAll([('spark.ui.enabled', 'true')])", "spark.ui.enabled"),
        ("DeltaTable.forPath(s, p).merge(f, 'a = b').whenMatchedUpdateAll().execute()", "merges into a table"),
        ("frame.writeTo('lake.db.t').append()", "a table of a catalog"),
        ("frame.write.format('iceberg').mode('append').save('lake.db.t')", "an Iceberg table"),
        ("spark.sql('INSERT INTO t SELECT 1')", "changes a table by INSERT"),
    ],
)
def test_what_is_told(tmp_path: Path, line: str, words: str) -> None:
    """Is a warning, and its detail names it."""
    finding = one(tmp_path, line)
    assert finding.status == "warn"
    assert words in finding.detail


@pytest.mark.parametrize("line", ["x.set('spark.app.name', 'y')", "os.environ['A'] = '1'", "spark.sql('SELECT 1')"])
def test_what_is_nobody_s_business(tmp_path: Path, line: str) -> None:
    """A name, a variable that is written, a query."""
    assert one(tmp_path, line).status == "ok"


@pytest.mark.parametrize("module", sorted(IN_IMAGE | IN_FULL))
def test_what_is_said_to_be_in_the_image_is_installed(module: str) -> None:
    """With the packages that the image is made of."""
    importlib.import_module(module)
