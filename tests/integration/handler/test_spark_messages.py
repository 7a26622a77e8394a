"""The texts of real Spark, Delta and Hadoop become a message of one line, and advice where they name no next step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors.exceptions import base, captured
from pyspark.errors.exceptions.captured import StreamingQueryException
from pyspark.sql.functions import udf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.utils import ForeachBatchFunction

from handler.driver import pyspark_fixes
from handler.driver.message import message_of
from handler.driver.raised import described, line_of
from handler.outcome.advice import advice_for
from handler.spark.missing_dependencies import Raised, explain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def advice(error: BaseException) -> str | None:
    found = advice_for([Raised(row["type"], row["ofSpark"], row["text"]) for row in described(error)])
    return None if found is None else found.text


def test_delta_s_two_schemas_become_the_columns_in_which_they_differ(spark: SparkSession, tmp_path: Path) -> None:
    """The answer to a job that writes other columns than the table's is one line."""
    table = str(tmp_path / "t")
    rows = spark.range(3)
    rows.selectExpr("id", "id AS name", "struct(id AS a, id AS b) AS s").write.format("delta").save(table)
    changed = rows.selectExpr("id", "id AS city", "struct(id AS a, id AS c) AS s")
    with pytest.raises(Exception, match="mismatch") as caught:
        changed.write.format("delta").mode("append").save(table)
    message = message_of(caught.value)
    assert message.endswith("Columns only in the data: city, s.c; only in the table: name, s.b")
    assert len(message.splitlines()) == 1


def test_the_query_s_plan_is_left_out(spark: SparkSession) -> None:
    """It is in the log; the sentence before it names the column."""
    with pytest.raises(Exception, match="nosuch") as caught:
        spark.range(3).select("nosuch")
    assert message_of(caught.value).endswith("Did you mean one of the following? [`id`]. SQLSTATE: 42703")


def test_a_catalog_that_nobody_configured_is_named(spark: SparkSession) -> None:
    """Spark speaks of namespaces."""
    with pytest.raises(Exception, match="single-part namespace") as caught:
        spark.sql("INSERT INTO nobodys.db.rooms VALUES (1)")
    assert str(advice(caught.value)).startswith("there is no catalog nobodys: ")


def test_a_bucket_that_does_not_exist_is_named(spark: SparkSession) -> None:
    """Hadoop tells of an unknown store, in a page of frames."""
    with pytest.raises(Exception, match="NoSuchBucket") as caught:
        spark.read.csv("s3a://nobodys-bucket/rooms.csv")
    assert str(advice(caught.value)).startswith("the bucket nobodys-bucket does not exist: ")


def test_an_error_of_the_script_s_own_gets_no_advice() -> None:
    """It may quote any text, such as a message of Spark's about something else."""
    assert advice(ValueError("UnknownStoreException: `s3a://nobodys-bucket/rooms.csv'")) is None


@pytest.mark.parametrize(
    "cell",
    [
        "org.apache.hadoop.fs.s3a.UnknownStoreException: s3a://payroll",
        "x\njava.nio.file.AccessDeniedException: s3a://payroll",
        "x\nCaused by: java.lang.ClassNotFoundException: com.example.Mine",
        "[REQUIRES_SINGLE_PART_NAMESPACE] `payroll`",
    ],
)
def test_a_cell_of_data_that_an_error_quotes_gets_no_advice(spark: SparkSession, cell: str) -> None:
    """An error of Spark's holds any data, also lines that look like those of another error."""
    for statement in ("CAST(value AS INT)", "raise_error(value)"):
        with pytest.raises(Exception, match=r"value|USER_RAISED") as caught:
            spark.createDataFrame([(cell,)], ["value"]).selectExpr(statement).collect()
        raised = [Raised(row["type"], row["ofSpark"], row["text"]) for row in described(caught.value)]
        assert (advice_for(raised), explain(raised, ())) == (None, None)


@pytest.mark.parametrize("raises", ["awaitTermination", "exception"])
def test_the_error_of_a_batch_gets_the_advice_of_its_class(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raises: str
) -> None:
    """Java has only its text; the line is the one in the batch's function, also for the error that a stream tells."""
    monkeypatch.setattr(ForeachBatchFunction, "call", ForeachBatchFunction.call)
    monkeypatch.setattr(StreamingQuery, "exception", StreamingQuery.exception)
    pyspark_fixes._keep_errors_of_streams()
    spark.range(1).write.format("delta").save(str(tmp_path / "t"))
    rows = spark.readStream.format("delta").load(str(tmp_path / "t"))

    def batch(frame: DataFrame, _: int) -> None:
        frame.sparkSession.read.csv("s3a://nobodys-bucket/rooms.csv")

    query = rows.writeStream.foreachBatch(batch).option("checkpointLocation", str(tmp_path / "c")).start()
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination()
    error = caught.value if raises == "awaitTermination" else query.exception()
    assert error is not None
    assert described(error)[0]["type"] == "StreamingQueryException"
    assert str(advice(error)).startswith("the bucket nobodys-bucket does not exist: ")
    line = batch.__code__.co_firstlineno + 1
    assert line_of(error, [str(Path(__file__).parent)]) == f"{Path(__file__).name}, line {line}"


@pytest.mark.filterwarnings("ignore:Cannot infer the eval type from type hints")  # it is a plain function
def test_a_cell_that_looks_like_a_trace_adds_no_frames(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark would make frames of it; those of a worker's error are the worker's, and tell the line in the script."""
    for module in (base, captured):
        monkeypatch.setattr(module, "recover_python_exception", base.recover_python_exception)
    pyspark_fixes._recover_no_frames()
    here = str(Path(__file__))
    file = "java.nio.file.AccessDeniedException: s3a://evil/pyspark/a.csv"
    lines = "".join(f'  File "{name}", line 1, in f\n    x\n' for name in (here, file))
    cell = f"Traceback (most recent call last):\n{lines}ValueError: y"
    rows = spark.createDataFrame([(cell,)], ["value"])

    def refuse(value: str) -> int:
        raise ValueError(value)

    places = [str(Path(here).parent)]
    with pytest.raises(captured.CapturedException) as of_java:
        rows.selectExpr("raise_error(value)").collect()
    with pytest.raises(captured.PythonException) as of_worker:
        rows.select(udf(refuse, "int")("value")).collect()
    assert (advice(of_java.value), advice(of_worker.value)) == (None, None)
    assert not str(line_of(of_java.value, places)).endswith("line 1")
    assert line_of(of_worker.value, places) == f"{Path(here).name}, line {refuse.__code__.co_firstlineno + 1}"
