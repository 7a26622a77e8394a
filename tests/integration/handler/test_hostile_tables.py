"""A table's log belongs to whoever may write it: its SQL runs in the jobs of others, and calls nothing but SQL."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

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
OF_JAVA = "('java.lang.System', 'getProperty', 'user.home')"
GENERATED, DEFAULT = "delta.generationExpression", "CURRENT_DEFAULT"


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=[CHECKPOINTS, SCRIPTS, LAKE], unlistable=[CHECKPOINTS]) as server:
        for name, text in {"append": APPEND, "queries": QUERIES}.items():
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


def create(s3: EmbeddedS3, table: str, column: dict[str, str]) -> str:
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
                "format": {"provider": "parquet", "options": {}},
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
