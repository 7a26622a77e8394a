"""A build of a snapshot makes each row's value: bytes, JSON of columns or a function's result; errors name keys."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types

from safewriter.snapshots.errors import ConfigValidationError, ValueEncodingError
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.routing.routing import HashRouting
from safewriter.snapshots.write.columns import KEY, SHARD, VALUE
from safewriter.snapshots.write.rows import RowFormat
from safewriter.snapshots.write.values import ValueSpec, binary_col, callable_encoder, json_cols


def values(rows: list[dict[str, Any]]) -> pa.Array:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.StructArray.from_arrays([pa.array([row.get(name) for row in rows]) for name in names], names)


def runs(spec: ValueSpec, rows: list[dict[str, Any]]) -> list[bytes]:
    """Encode rows as a task does; their keys are 10, 11, and so on."""
    batch = pa.RecordBatch.from_arrays(
        [pa.array([0] * len(rows), pa.int32()), pa.array(range(10, 10 + len(rows))), values(rows)],
        names=[SHARD, KEY, VALUE],
    )
    (run,) = RowFormat(HashRouting(1), KeyEncoding.U64BE, spec, "id").runs(batch)
    return run.values


ROWS: list[dict[str, Any]] = [
    {"z": 1, "a": 0.1, "text": 'é "quoted" \U0001f600\n', "flag": True, "none": None},
    {"z": -(2**63), "a": 1e300, "text": "", "flag": False, "none": None},
    {"z": None, "a": None, "text": None, "flag": None, "none": None},
]


def test_columns_become_one_json_object() -> None:
    """Members are sorted, without blanks, in ASCII: the bytes that shardyfusion's writer makes of the same row."""
    assert runs(json_cols(), ROWS) == [json.dumps(row, sort_keys=True, separators=(",", ":")).encode() for row in ROWS]
    assert runs(json_cols(), ROWS)[0] == (
        b'{"a":0.1,"flag":true,"none":null,"text":"\\u00e9 \\"quoted\\" \\ud83d\\ude00\\n","z":1}'
    )


def test_nested_columns_are_nested_in_json() -> None:
    """These are arrays, structs, and maps, whose keys become texts."""
    kind = pa.struct([("m", pa.map_(pa.int32(), pa.string())), ("s", pa.struct([("b", pa.int8()), ("a", pa.bool_())]))])
    row = pa.array([{"m": [(2, "two"), (1, "one")], "s": {"b": 3, "a": True}}], kind)
    assert json_cols().encode(row) == [b'{"m":{"1":"one","2":"two"},"s":{"a":true,"b":3}}']


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_has_not_is_an_error_with_its_key(number: float) -> None:
    """Only Python's readers could parse the value."""
    with pytest.raises(ValueEncodingError, match=r"the row with id 11: json_cols: .*JSON") as failed:
        runs(json_cols(), [{"v": 1.0, "w": ""}, {"v": number, "w": "secret"}])
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize("kind", [types.IntegerType(), types.BooleanType(), types.ArrayType(types.StringType())])
def test_a_column_that_is_neither_bytes_nor_text_is_refused(kind: types.DataType) -> None:
    """Spark would convert an integer to four bytes."""
    df: Any = SimpleNamespace(columns=["v"], schema=types.StructType([types.StructField("v", kind)]))
    with pytest.raises(ConfigValidationError, match=rf"'v' has the type {kind.simpleString()}"):
        binary_col("v").column(df, "id")


@pytest.mark.parametrize("cols", ["name", []])
def test_columns_are_a_list_of_names(cols: Any) -> None:
    """A single text would be a list of letters."""
    with pytest.raises(ConfigValidationError, match="json_cols asks for a list of columns"):
        json_cols(cols)


def test_a_function_gets_the_row_and_makes_its_value() -> None:
    """It returns bytes or text."""
    spec = callable_encoder(lambda row: f"{row['a']}/{row['b']}" if row["a"] else b"\x00")
    assert runs(spec, [{"a": 1, "b": "x"}, {"a": 0, "b": "y"}]) == [b"1/x", b"\x00"]


def test_a_function_that_cannot_travel_is_refused_at_once() -> None:
    """The error names it, before any job runs."""
    lock = threading.Lock()

    def encoded(row: dict[str, Any]) -> bytes:
        with lock:
            return b""

    with pytest.raises(ConfigValidationError, match=r"callable_encoder: .*encoded cannot travel to the executors"):
        callable_encoder(encoded)


def test_a_function_that_makes_something_else_is_an_error_with_its_key() -> None:
    """A branch may return None. The row's content is in no message, since messages are stored."""
    spec = callable_encoder(lambda row: b"" if row["a"] == 1 else None)  # type: ignore[arg-type,return-value]
    with pytest.raises(ValueEncodingError, match=r"the row with id 11: .*lambda.* made NoneType, and") as failed:
        runs(spec, [{"a": 1}, {"a": 4711}])
    assert "4711" not in str(failed.value)


def test_a_function_that_fails_is_an_error_with_its_key() -> None:
    """The error has the function's own error."""
    spec = callable_encoder(lambda row: row["missing"])
    with pytest.raises(ValueEncodingError, match=r"the row with id 10: .* failed: KeyError\('missing'\)") as failed:
        runs(spec, [{"a": "secret"}])
    assert isinstance(failed.value.__cause__, Exception)
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize("spec", [json_cols(), callable_encoder(lambda _: b"")])
@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([b"a", b"\xffsecret"]).view(pa.string()), "string"),
        (pa.array([[b"a"], [b"\xffsecret"]]).cast(pa.list_(pa.binary())), "list"),
        (pa.array([0, 353_402_300_799_000_000], pa.timestamp("us")), "timestamp"),
    ],
)
def test_a_value_that_python_has_not_is_an_error_with_its_key(spec: ValueSpec, column: pa.Array, kind: str) -> None:
    """These are a text that is not UTF-8, and a moment after the year 9999."""
    if kind == "list":
        column = pa.ListArray.from_arrays(column.offsets, column.values.view(pa.string()))
    batch = pa.RecordBatch.from_arrays(
        [pa.array([0, 0], pa.int32()), pa.array([10, 11]), pa.StructArray.from_arrays([column], ["c"])],
        names=[SHARD, KEY, VALUE],
    )
    with pytest.raises(ValueEncodingError, match=f"the row with id 11: the column 'c' has a {kind}.* Python") as failed:
        list(RowFormat(HashRouting(1), KeyEncoding.U64BE, spec, "id").runs(batch))
    assert "secret" not in str(failed.value)
