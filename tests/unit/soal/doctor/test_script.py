"""The doctor parses a script and finds lines that fail or differ here: settings, variables, notebooks, SQL."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from handler.spark.missing_dependencies import Missing
from soal.doctor import script
from tests.integration.handler import shape_scripts
from tests.unit.soal.doctor.examined import look, one

if TYPE_CHECKING:
    from pathlib import Path

# The start and end of a script for aws-samples/spark-on-aws-lambda.
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
SHAPES = {name: text for name, text in vars(shape_scripts).items() if name.isupper()}


def test_a_script_from_elsewhere(tmp_path: Path) -> None:
    """Each ignored setting, each variable and the unguarded write is found, with its line, in order."""
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


@pytest.mark.parametrize("text", [WELL, *SHAPES.values()], ids=["guarded", *SHAPES])
def test_a_script_that_is_well(tmp_path: Path, text: str) -> None:
    """A script that runs as it is gives one finding that says so."""
    assert one(tmp_path, text).status == "ok"


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
    """A line that will fail is a failure with a remedy."""
    finding = one(tmp_path, line)
    assert (finding.status, finding.name) == ("fail", "job.py:1")
    assert words in finding.remedy


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("import polars", "polars, which is not in the image"),
        ("SparkConf().setMaster('yarn')", "spark.master"),
        ("SparkSession.builder.config(map={'spark.executor.cores': 2})", "spark.executor.cores"),
        ("SparkConf().setAll([('spark.ui.enabled', 'true')])", "spark.ui.enabled"),
        ("DeltaTable.forPath(s, p).merge(f, 'a = b').whenMatchedUpdateAll().execute()", "merges into a table"),
        ("frame.writeTo('lake.db.t').append()", "a table of a catalog"),
        ("frame.write.format('iceberg').mode('append').save('lake.db.t')", "an Iceberg table"),
        ("frame.write.format('DELTA').save('s3a://lake/t')", "a Delta table"),
        ("spark.sql('INSERT INTO lake.db.t SELECT 1')", "changes a table by INSERT"),
    ],
)
def test_what_is_told(tmp_path: Path, line: str, words: str) -> None:
    """A line that differs here is a warning that names the cause."""
    finding = one(tmp_path, line)
    assert finding.status == "warn"
    assert words in finding.detail


@pytest.mark.parametrize(
    "line", ["x.set('spark.app.name', 'y')", "os.environ['A'] = '1'", "spark.sql('SELECT 1')", "x.set([(1,)])"]
)
def test_what_is_nobody_s_business(tmp_path: Path, line: str) -> None:
    """Harmless lines are not reported: a name, a variable that is set, a query, a list without settings."""
    assert one(tmp_path, line).status == "ok"


def test_variants_that_have_what_a_script_needs_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variants that have everything are named; if there is none, the doctor says where the parts are."""
    rows = {
        "first": Missing("A", "", ("full", "wide"), formats=("a",)),
        "second": Missing("B", "", ("wide", "full"), formats=("b",)),
        "third": Missing("C", "", ("other",), formats=("c",)),
    }
    monkeypatch.setattr(script, "read_missing", lambda *_: tuple(rows.values()))

    both, *_ = look(tmp_path, "spark.read.format('a').load(p)\nspark.read.format('b').load(p)")
    none, *_ = look(tmp_path, "spark.read.format('a').load(p)\nspark.read.format('c').load(p)")

    assert both.detail == "it needs the image's variant full or wide"
    assert none.detail.endswith("has all that it needs: some of it is in full, some in other, some in wide")


def test_a_notebook_is_refused(tmp_path: Path) -> None:
    """A notebook is refused: its JSON is a Python expression without effect."""
    cells = [{"cell_type": "code", "source": ["import pandas"], "metadata": {}}]
    finding = one(tmp_path, json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))

    assert (finding.status, finding.name) == ("fail", "job.py:1")
    assert "notebook" in finding.detail
    assert "export it as a script" in finding.remedy


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x = " + "+".join(["a"] * 100_000), id="RecursionError"),
        pytest.param("x = " + "-" * 100_000 + "1", id="MemoryError"),
        pytest.param("{'nbformat': " + "[" * 100_000, id="JSON"),
        pytest.param("(" * 300 + ")" * 300, id="parentheses"),
        pytest.param("".join(f"{' ' * depth}if a:\n" for depth in range(200)), id="blocks"),
    ],
)
def test_code_that_is_nested_too_deeply_is_told(tmp_path: Path, text: str) -> None:
    """Code that is nested too deeply is a failure finding, not a traceback."""
    finding = one(tmp_path, text)

    assert finding.status == "fail"
    assert "is nested too deeply to be read" in finding.detail


@pytest.mark.parametrize(
    ("begin", "again"),
    [("frame", ".withColumn('a', b)"), ("x = 1", " + 1"), ("if a:\n    b()\n", "elif a:\n    b()\n")],
)
def test_long_chains_are_read(tmp_path: Path, begin: str, again: str) -> None:
    """Chains with a thousand repetitions, as generated code has, are parsed."""
    assert one(tmp_path, begin + 1_000 * again).status == "ok"


def test_a_variable_in_sql_is_told(tmp_path: Path) -> None:
    """A variable in SQL is reported: elsewhere Spark replaces it, here it stays in the text."""
    text = "spark.sql(\"SET day='1'\")\nspark.sql(\"SELECT '${day}' AS day\")\nspark.sql(\"SELECT '$day' AS day\")\n"
    finding = one(tmp_path, text)
    assert (finding.name, finding.status) == ("job.py:2", "warn")
    assert finding.detail == "names ${day} in SQL, which Spark does not replace here"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    ["create " + " table x" * 60_000, "${" * 200_000, "create table x location" + " " * 400_000],
    ids=["tables", "variables", "blanks"],
)
def test_a_long_text_of_a_script_is_read_once(tmp_path: Path, text: str) -> None:
    """Generated SQL may have any length, and takes no minutes."""
    assert look(tmp_path, f"spark.sql({text!r})")


@pytest.mark.parametrize(
    ("sql", "is_write"),
    [
        ("create table t as select 1", True),
        ("CREATE OR REPLACE\nTABLE t USING delta\nAS\n(SELECT 1)", True),
        ("create table t (a int)", False),
        ("select 1 as create_table", False),
    ],
)
def test_a_table_that_is_created_from_rows_is_a_write(tmp_path: Path, sql: str, *, is_write: bool) -> None:
    """An empty table holds nothing that a retry could double."""
    found = look(tmp_path, f"spark.sql({sql!r})")
    assert any("changes a table by CREATE" in finding.detail for finding in found) is is_write
