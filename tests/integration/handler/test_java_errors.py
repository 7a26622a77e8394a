"""Java exceptions in the answer, under the real emulator with real Spark: one line there, the whole in the log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from handler.outcome.result import Result
from scripts.emulator.rie import LambdaEmulator
from soal.testing.s3 import EmbeddedS3
from soal.testing.s3.rules import Match, Rule
from tests.support.waiting import BUSY_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from soal.testing.s3.exchange import Reply, Request

    Run = Callable[[str], tuple[Result, str]]

pytestmark = [pytest.mark.emulator, pytest.mark.spark]

SESSION = "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n"
NO_NUMBER = """
from pyspark.sql import SparkSession
SparkSession.builder.config("spark.sql.shuffle.partitions", "two").getOrCreate().range(3).count()
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[EmbeddedS3]:
    with EmbeddedS3(buckets=["checkpoints", "scripts", "lake"], unlistable=["checkpoints"]) as server:
        yield server


@pytest.fixture(scope="module")
def run(s3: EmbeddedS3) -> Iterator[Run]:
    """Run a script that fails; return its result and the log."""
    lines: list[str] = []
    environment = {
        **s3.environment(),
        "SOAL_JIT": "c1",
        "SW_CHECKPOINT_BUCKET": "checkpoints",
        "SOAL_CONF": json.dumps(
            {
                "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
                "spark.sql.catalog.lake.type": "jdbc",
                "spark.sql.catalog.lake.uri": "jdbc:postgresql://127.0.0.1:9/lake",
                "spark.sql.catalog.lake.warehouse": "s3a://lake/warehouse",
            }
        ),
    }
    with LambdaEmulator(environment, timeout_s=BUSY_S, memory_mb=1536, on_line=lines.append) as function:

        def failed(script: str) -> tuple[Result, str]:
            s3.observer().put_object(Bucket="scripts", Key="job.py", Body=script.encode())
            lines.clear()
            answer = function.invoke("s3://scripts/job.py")
            assert answer.error is not None
            # The emulator logs the answer, too; the job's output is in lines of the handler's log.
            logged = [line for line in lines if '"location":"log_job_line' in line]
            return Result.model_validate(json.loads(answer.error.message)), "\n".join(logged)

        yield failed


def test_an_iceberg_catalog_without_its_database_driver(run: Run) -> None:
    """One line names what is missing, the remedy, and the cause; the trace is in the log."""
    result, log = run(SESSION + "spark.range(3).writeTo('lake.db.numbers').create()")
    assert result.error is not None
    assert (result.state, result.error.type, result.error.usage) == ("FAILED", "NotInImage", True)
    assert result.error.message == result.state_details
    assert result.state_details == (
        "the image does not have the drivers of PostgreSQL and MySQL: its variant full does (soal image build"
        " --variant full, context key image_variant=full). Without it: export to S3 first; an Iceberg catalog of the"
        " type jdbc also needs the Python packages of requirements/sql.txt, by which the guard settles writes"
        " (Py4JJavaError: org.apache.iceberg.jdbc.UncheckedSQLException: Failed to connect:"
        " jdbc:postgresql://127.0.0.1:9/lake; root cause: java.sql.SQLException: No suitable driver found for"
        " jdbc:postgresql://127.0.0.1:9/lake (job.py, line 3))"
    )
    assert "at org.apache.iceberg.jdbc.JdbcCatalog.initialize(" in log
    assert "Caused by: java.sql.SQLException: No suitable driver found" in log


def test_a_database_that_is_read_without_a_driver(run: Run) -> None:
    """The remedy differs from the catalog's: its rows can come by way of S3."""
    result, _ = run(SESSION + "spark.read.jdbc('jdbc:postgresql://127.0.0.1:9/lake', 'numbers').count()")
    assert result.state_details == (
        "the image does not have the driver of this SQL database: export to S3 first; the image's variant full has the"
        " drivers of PostgreSQL and MySQL. A derived image can add it (image/derived)"
        " (Py4JJavaError: java.sql.SQLException: No suitable driver (job.py, line 3))"
    )


def test_an_exception_with_the_trace_that_pyspark_adds(run: Run) -> None:
    """The setting that Spark cannot read is in the root cause."""
    result, log = run(NO_NUMBER)
    assert result.error is not None
    assert result.error.message == (
        "IllegalArgumentException: Error while instantiating 'org.apache.spark.sql.internal.SessionStateBuilder'; root"
        " cause: org.apache.spark.SparkIllegalArgumentException: [INVALID_CONF_VALUE.TYPE_MISMATCH] The value 'two' in"
        " the config \"spark.sql.shuffle.partitions\" is invalid. It should be a/an 'int' value. SQLSTATE: 22022"
        " (job.py, line 3)"
    )
    assert "at org.apache.spark.sql.internal.SQLConf.setConfString(" in log


def test_an_exception_of_a_python_worker_by_way_of_java(run: Run) -> None:
    """The worker's own message ends the line, without frames of either language."""
    result, log = run(SESSION + "spark.sparkContext.parallelize([0], 1).map(lambda day: 1 / day).collect()")
    (line,) = result.state_details.splitlines()
    assert line.startswith("Py4JJavaError: org.apache.spark.SparkException: Job aborted due to stage failure: ")
    assert line.endswith("PythonException: ZeroDivisionError: division by zero (job.py, line 3)")
    assert "at org.apache.spark.scheduler.DAGScheduler" in log


def test_a_module_that_a_worker_cannot_import(run: Run) -> None:
    """One sentence, although the import failed in another process."""
    need = "from pyspark.sql.functions import udf\n@udf('int')\ndef need(x):\n    import not_anywhere\n    return x\n"
    result, log = run(SESSION + need + "spark.range(1).select(need('id')).collect()")
    assert result.error is not None
    assert (result.error.type, result.error.usage) == ("NotInImage", True)
    (line,) = result.state_details.splitlines()
    assert line.startswith("the script imports not_anywhere, which neither the image nor the job's pyFiles have: ")
    assert "Traceback" not in line
    assert "Traceback (most recent call last)" in log


def test_a_module_that_a_batch_of_a_stream_cannot_import(run: Run) -> None:
    """The import failed in a function that Java called; the line is that function's."""
    need = "def need(rows, number):\n    import not_anywhere\nrows = spark.readStream.format('rate').load()\n"
    start = "rows.writeStream.foreachBatch(need).option('checkpointLocation', 's3a://lake/stream').start()"
    result, _ = run(f"{SESSION}{need}{start}.awaitTermination()")
    assert result.error is not None
    assert (result.error.type, result.error.usage) == ("NotInImage", True)
    assert result.state_details.startswith("the script imports not_anywhere, which neither the image nor the job's ")
    assert result.state_details.endswith("(job.py, line 4))")


@pytest.mark.parametrize(
    ("ends", "type_name"), [("raise StoreError('no answer')", "StreamingQueryException"), ("sys.exit(75)", "TryAgain")]
)
def test_the_exit_code_of_a_batch_is_the_run_s(run: Run, ends: str, type_name: str) -> None:
    """As if its error were the script's own: the same event may succeed later."""
    batch = (
        f"import sys\nfrom safewriter import StoreError\ndef batch(rows, number):\n    {ends}\n"
        "rows = spark.readStream.format('rate').load()\n"
    )
    start = f"rows.writeStream.foreachBatch(batch).option('checkpointLocation', 's3a://lake/{type_name}').start()"
    result, _ = run(f"{SESSION}{batch}{start}.awaitTermination()")
    assert result.error is not None
    assert (result.exit_code, result.error.type, result.error.retryable) == (75, type_name, True)


@pytest.mark.parametrize(
    ("imported", "type_name"), [("", "Py4JJavaError"), ("import delta\n", "MetadataChangedException")]
)
def test_a_commit_behind_another_writer_s_may_be_tried_again(
    run: Run, s3: EmbeddedS3, imported: str, type_name: str
) -> None:
    """A script that writes by SQL alone imports no Python of Delta's, so its error is Java's own."""
    table, lake = f"conflict-{type_name}", s3.observer()

    def overtaken(request: Request) -> Reply:
        """Let another writer change the table just before the job's commit."""
        created = lake.get_object(Bucket="lake", Key=f"{table}/_delta_log/{0:020}.json")["Body"].read().splitlines()
        commit = [json.loads(line) for line in created if b'"protocol"' not in line]
        next(action["metaData"] for action in commit if "metaData" in action)["description"] = "another writer's"
        lake.put_object(Bucket="lake", Key=request.key, Body="\n".join(map(json.dumps, commit)).encode())
        return request.apply()

    s3.wire.add(Rule(Match(operations={"PutObject"}, key=f"{table}/_delta_log/{1:020}.json"), overtaken))
    create = f"spark.sql('CREATE TABLE delta.`s3a://lake/{table}` (v LONG) USING delta')\n"
    result, _ = run(f"{SESSION}{imported}{create}spark.sql('INSERT INTO delta.`s3a://lake/{table}` VALUES (1)')")
    assert result.error is not None
    assert (result.error.type, result.error.retryable) == (type_name, True)
    assert "MetadataChangedException" in result.state_details


def test_a_class_that_the_session_cannot_find(run: Run) -> None:
    """The error gives the class's name, which is the script's own."""
    result, _ = run(SESSION + "spark.udf.registerJavaFunction('f', 'com.example.Mine')")
    assert result.state_details.startswith("the image does not have the Java class com.example.Mine: correct its name")


def test_a_module_that_the_script_does_without(run: Run) -> None:
    """What the script logs is not the reason of its failure."""
    logged = "import logging\ntry:\n    import not_anywhere\nexcept ImportError:\n    logging.exception('no matter')\n"
    result, _ = run(logged + "raise ValueError('the price of row 7 is negative')")
    assert result.state_details == "ValueError: the price of row 7 is negative (job.py, line 6)"
