"""Values of a snapshot that a real Spark computes."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.snapshots.config import WriteConfig
from safewriter.snapshots.errors import ConfigValidationError, KeyRangeError, ValueEncodingError
from safewriter.snapshots.read.reader import SnapshotReader
from safewriter.snapshots.write.build import write_sharded
from safewriter.snapshots.write.values import callable_encoder, json_cols
from tests.support.lake import LAKE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from safewriter.snapshots.write.values import ValueSpec

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("lake")]

PREFIX = f"s3://{LAKE}/snapshots/values"


def built(frame: DataFrame, spec: ValueSpec, keys: list[int]) -> list[Any]:
    write_sharded(
        frame, WriteConfig(num_dbs=2, s3_prefix=PREFIX), key_col="the `key`.", value_spec=spec, step=uuid.uuid4().hex
    )
    with SnapshotReader(PREFIX) as reader:
        return list(reader.multi_get(keys).values())


def test_columns_become_json_whatever_their_names(spark: SparkSession) -> None:
    """All columns except the key, or some; a name may have dots, blanks and backticks."""
    frame = spark.sql(
        "SELECT id AS `the ``key``.`, id * 2 AS `a.b`, float(0.1) AS `f``g`, array(named_struct('z', 1, 'y', 'ü')) AS n"
        " FROM range(3)"
    )
    rows: list[dict[str, Any]] = [row.asDict(recursive=True) for row in frame.collect()]
    for row in rows:
        del row["the `key`."]
    expected = [json.dumps(row, sort_keys=True, separators=(",", ":")).encode() for row in rows]
    assert built(frame, json_cols(), [0, 1, 2]) == expected
    assert built(frame, json_cols(["a.b"]), [0, 1, 2]) == [b'{"a.b":0}', b'{"a.b":2}', b'{"a.b":4}']
    assert built(frame, json_cols(["the `key`."]), [1]) == [b'{"the `key`.":1}']


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ("current_date()", "the type date"),
        ("named_struct('d', array(1.5BD))", r"the type decimal\(2,1\)"),
        ("map('a', binary('b'))", "the type binary"),
        ("map(struct(1), 'b')", "the type map<"),
    ],
)
def test_a_column_that_json_has_not_is_refused(spark: SparkSession, column: str, problem: str) -> None:
    """The error gives its name and its unsupported type, before anything is read."""
    frame = spark.range(1).selectExpr("id AS `the ``key``.`", f"{column} AS odd")
    with pytest.raises(ConfigValidationError, match=f"the column 'odd' has {problem}"):
        built(frame, json_cols(), [])
    with pytest.raises(ConfigValidationError, match="there is no column 'missing'"):
        built(frame, json_cols(["missing"]), [])


def test_a_function_makes_values_of_rows(spark: SparkSession) -> None:
    """It gets Python types; the key is among the columns."""
    frame = spark.sql("SELECT id AS `the ``key``.`, 1.50BD AS d, timestamp'2026-01-02 03:04:05Z' AS t FROM range(2)")

    def encoded(row: dict[str, Any]) -> str:
        return f"{row['the `key`.']} {row['d']} {row['t'].timestamp():.0f}"

    assert built(frame, callable_encoder(encoded), [1]) == [b"1 1.50 1767323045"]


def test_an_error_in_a_task_comes_to_the_driver_as_itself(spark: SparkSession) -> None:
    """It has the row's key, or the bad key; `_CURRENT` is not written."""
    frame = spark.range(5).selectExpr("id AS `the ``key``.`", "nullif(id, 3) AS v")
    with pytest.raises(ValueEncodingError, match=r"the row with the `key`\. 3: .* failed: TypeError"):
        built(frame, callable_encoder(lambda row: str(row["v"] + 1)), [])
    with pytest.raises(KeyRangeError, match="a key is null"):
        built(frame.selectExpr("v AS `the ``key``.`", "v"), json_cols(), [])
