"""The texts of real Spark, Delta and Hadoop become a message of one line, and advice where they name no next step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from handler.driver.message import message_of
from handler.driver.raised import described
from handler.outcome.advice import advice_for
from handler.spark.missing_dependencies import Raised, explain

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def advice(error: BaseException) -> str | None:
    return advice_for(Raised(row["type"], row["ofSpark"], row["text"]) for row in described(error))


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
