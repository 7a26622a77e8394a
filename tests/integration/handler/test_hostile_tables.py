"""A table's log belongs to whoever may write it: its SQL runs in the jobs of others, and calls nothing but SQL."""

from __future__ import annotations

import io
import json
import socket
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from handler.outcome.result import Result
from scripts.emulator import EmbeddedS3
from scripts.emulator.rie import LambdaEmulator
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.emulator, pytest.mark.spark]

CHECKPOINTS, SCRIPTS, LAKE = "checkpoints", "scripts", "lake"
APPEND = """
import sys
from pyspark.sql import SparkSession
from safewriter import SafeWriter

spark = SparkSession.builder.getOrCreate()
with SafeWriter(spark, sys.argv[1]) as sw:
    spark.range(2).write.format("delta").mode("append").save(sw.table)
    sw.success()
"""
READ = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
data = spark.read.format(sys.argv[1]).load(sys.argv[2])
print("COLUMNS", data.columns)
print("ROWS", data.count(), data.collect())
"""
QUERIES = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension").getOrCreate()
for session in (spark, spark.newSession()):
    for query in sys.argv[1:]:
        try:
            print("RAN", session.sql(query).collect())
        except Exception as error:
            print("REFUSED", "does not call Java" in str(error) or "does not start programs" in str(error))
"""
ICEBERG = """
import sys
from pyspark.sql import SparkSession
name = "spark.sql.catalog.own"
builder = SparkSession.builder.config(name, "org.apache.iceberg.spark.SparkCatalog").config(f"{name}.type", "hadoop")
spark = builder.config(f"{name}.warehouse", sys.argv[1]).getOrCreate()
spark.sql(f"CREATE TABLE own.db.t (id BIGINT) USING iceberg TBLPROPERTIES ({sys.argv[2]})")
spark.range(2).writeTo("own.db.t").append()
print("ROWS", spark.table("own.db.t").count())
"""
OF_JAVA = "('java.lang.System', 'getProperty', 'user.home')"
GENERATED, DEFAULT = "delta.generationExpression", "CURRENT_DEFAULT"


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE], unlistable=[CHECKPOINTS]) as server:
        for name, text in {"append": APPEND, "read": READ, "queries": QUERIES, "iceberg": ICEBERG}.items():
            server.observer().put_object(Bucket=SCRIPTS, Key=f"{name}.py", Body=text.encode())
        yield server


@pytest.fixture(scope="module")
def function(s3: EmbeddedS3) -> Iterator[LambdaEmulator]:
    environment = {**s3.environment(), "SW_CHECKPOINT_BUCKET": CHECKPOINTS}
    with LambdaEmulator(environment, timeout_s=12 * BUSY_S, memory_mb=1769) as emulator:
        yield emulator


def run(function: LambdaEmulator, script: str, *arguments: str) -> Result:
    answer = function.invoke({"entryPoint": f"s3://{SCRIPTS}/{script}.py", "entryPointArguments": list(arguments)})
    return Result.model_validate(answer.payload if answer.error is None else json.loads(answer.error.message))


def create(s3: EmbeddedS3, table: str, column: dict[str, str], options: dict[str, str] | None = None) -> str:
    """Make an empty table, as anybody can who may write one object."""
    schema = {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "g", "type": "string", "nullable": True, "metadata": column},
        ],
    }
    features = ["appendOnly", "invariants", "generatedColumns", "allowColumnDefaults"]
    actions = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}},
        {
            "metaData": {
                "id": table,
                "format": {"provider": "parquet", "options": options or {}},
                "schemaString": json.dumps(schema),
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 1,
            }
        },
    ]
    body = "\n".join(json.dumps(action) for action in actions)
    s3.observer().put_object(Bucket=LAKE, Key=f"{table}/_delta_log/{0:020}.json", Body=body.encode())
    return f"s3a://{LAKE}/{table}"


def test_the_sql_of_a_table_starts_no_program(function: LambdaEmulator, s3: EmbeddedS3, tmp_path: Path) -> None:
    """An append evaluates generated columns and defaults, and would run a shell with the role, by Java or by SQL."""
    started = tmp_path / "started"
    java = f"reflect('org.apache.spark.TestUtils', 'testCommandAvailable', 'x; touch {started}')"
    program = f"(SELECT max(a) FROM (SELECT TRANSFORM(1) USING 'touch {started}; echo 1' AS (a string)))"
    columns = ({GENERATED: java}, {GENERATED: program}, {DEFAULT: java, "EXISTS_DEFAULT": "'x'"})
    for number, column in enumerate(columns):
        result = run(function, "append", create(s3, f"table{number}", column))
        assert not started.exists(), column
        assert result.state == "FAILED"
        assert "none of its writes is committed" in result.state_details


def test_a_column_that_calls_nothing_is_generated(function: LambdaEmulator, s3: EmbeddedS3) -> None:
    """So the errors above are no broken table."""
    assert run(function, "append", create(s3, "honest", {GENERATED: "cast(id AS string)"})).state == "SUCCESS"


def test_no_sql_calls_java(function: LambdaEmulator) -> None:
    """Each function that could, in each session, also where a script names extensions of its own; the error says so."""
    queries = [f"SELECT {name}{OF_JAVA}" for name in ("reflect", "java_method", "try_reflect")]
    result = run(function, "queries", *queries, "SELECT TRANSFORM(1) USING 'cat' AS (a string)")
    assert result.state == "SUCCESS"
    assert [line for line in result.log_tail if line.startswith(("RAN", "REFUSED"))] == ["REFUSED True"] * 8


def test_a_table_s_log_sets_nothing_of_hadoop_s(function: LambdaEmulator, s3: EmbeddedS3, tmp_path: Path) -> None:
    """By options of the format, or of a relation in its SQL: another server, a program; not even in a read."""
    elsewhere = socket.create_server(("127.0.0.1", 0))
    elsewhere.settimeout(0)
    endpoint = {"fs.s3a.endpoint": f"http://127.0.0.1:{elsewhere.getsockname()[1]}"}
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    program.chmod(0o755)
    topology = {"fs.client.resolve.topology.enabled": "true", "net.topology.script.file.name": str(program)}
    s3.observer().put_object(Bucket=LAKE, Key="rows/a.txt", Body=b"row\n")

    for number, (options, path) in enumerate(((endpoint, f"s3a://{LAKE}/rows"), (topology, "hdfs://127.0.0.1:1/a"))):
        of_format = create(s3, f"options{number}", {}, options)
        add = {"path": f"{path}/a.parquet", "partitionValues": {}, "size": 9, "modificationTime": 1, "dataChange": True}
        log = f"options{number}/_delta_log/{1:020}.json"
        s3.observer().put_object(Bucket=LAKE, Key=log, Body=json.dumps({"add": add}).encode())
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
        of_sql = create(s3, f"sql{number}", {GENERATED: f"(SELECT max(value) FROM text.`{path}` WITH ({listed}))"})

        result = run(function, "read", "delta", of_format)
        assert result.state == "FAILED"
        assert f"the option {next(iter(options))} sets more than a format" in " ".join(result.log_tail)
        assert run(function, "append", of_sql).state == "FAILED"
    assert not (tmp_path / "started").exists()
    with pytest.raises(BlockingIOError):
        elsewhere.accept()
    elsewhere.close()


@pytest.mark.parametrize("named", ["venv.__main__.X", "sys.exit"])
def test_a_file_s_schema_runs_no_python(function: LambdaEmulator, s3: EmbeddedS3, named: str) -> None:
    """A column of a Python class that the script has not imported: the job fails and says so, and does not end well."""
    kind = {"type": "udt", "pyClass": named, "serializedClass": "AAAA", "sqlType": "string"}
    field = {"name": "a", "type": kind, "nullable": True, "metadata": {}}
    footer = json.dumps({"type": "struct", "fields": [field]})
    table = pa.table({"a": ["x"]}).replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": footer})
    body = io.BytesIO()
    pq.write_table(table, body)
    s3.observer().put_object(Bucket=LAKE, Key=f"classes/{named}/a.parquet", Body=body.getvalue())

    result = run(function, "read", "parquet", f"s3a://{LAKE}/classes/{named}")

    assert result.state == "FAILED"
    assert f"the Python class {named}" in result.state_details


def test_options_of_formats_are_options_still(function: LambdaEmulator, s3: EmbeddedS3) -> None:
    """Those of a table's log, too: a harmless one reads the table."""
    table = create(
        s3, "harmless", {}, {"mapreduce.input.fileinputformat.split.maxsize": "1048576", "plain": "x", "delta.of": "x"}
    )
    result = run(function, "read", "delta", table)
    assert result.state == "SUCCESS", result.state_details


def test_the_properties_of_an_iceberg_table_set_nothing_of_hadoop_s(function: LambdaEmulator, s3: EmbeddedS3) -> None:
    """Iceberg's writer of Parquet would send the rows, signed with the role, to another server, or load a class."""
    elsewhere = socket.create_server(("127.0.0.1", 0))
    elsewhere.settimeout(0)
    foreign = {
        "fs.s3a.endpoint": f"http://127.0.0.1:{elsewhere.getsockname()[1]}",
        "fs.s3a.impl.disable.cache": "true",
        "fs.s3a.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    }
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in foreign.items())

    result = run(function, "iceberg", f"s3a://{LAKE}/warehouse", listed)

    assert result.state == "SUCCESS", result.state_details
    assert "ROWS 2" in result.log_tail
    assert len(s3.observer().list_objects_v2(Bucket=LAKE, Prefix="warehouse/db/t/data/")["Contents"]) == 1
    with pytest.raises(BlockingIOError):
        elsewhere.accept()
    elsewhere.close()
