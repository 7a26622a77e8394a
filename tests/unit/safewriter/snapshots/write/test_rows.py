"""A task of a snapshot's build turns Arrow batches into stored keys and values, and checks each row's shard."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from safewriter.snapshots.errors import KeyRangeError, ShardAssignmentError
from safewriter.snapshots.format.encoding import KeyEncoding, encode
from safewriter.snapshots.routing.hashing import digest
from safewriter.snapshots.routing.routing import HashRouting
from safewriter.snapshots.write.columns import KEY, SHARD, VALUE
from safewriter.snapshots.write.rows import RowFormat
from safewriter.snapshots.write.values import binary_col


def rows(num_dbs: int, encoding: KeyEncoding) -> RowFormat:
    return RowFormat(HashRouting(num_dbs), encoding, binary_col("v"), "id")


def batch(keys: list[Any], num_dbs: int, kind: pa.DataType) -> pa.RecordBatch:
    ordered = sorted((digest(key) % num_dbs, key) for key in keys)
    columns = [
        pa.array([shard for shard, _ in ordered], pa.int32()),
        pa.array([key for _, key in ordered], kind),
        pa.array([repr(key).encode() for _, key in ordered], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=[SHARD, KEY, VALUE])


@pytest.mark.parametrize(
    ("keys", "kind", "encoding"),
    [
        (list(range(100)), pa.int64(), KeyEncoding.U64BE),
        (list(range(100)), pa.int32(), KeyEncoding.U32BE),
        ([f"k{number}" for number in range(100)], pa.string(), KeyEncoding.UTF8),
        ([bytes([number, 255]) for number in range(100)], pa.binary(), KeyEncoding.RAW),
    ],
)
def test_rows_come_in_runs_of_one_shard(keys: list[Any], kind: pa.DataType, encoding: KeyEncoding) -> None:
    """They have stored keys, each is in its own shard, and none is missing."""
    found = list(rows(7, encoding).runs(batch(keys, 7, kind)))
    assert len(found) == len({run.db_id for run in found}) == 7
    for run in found:
        of_run = sorted(encode(key, encoding) for key in keys if digest(key) % 7 == run.db_id)
        assert sorted(run.keys) == of_run
    values = {key: value for run in found for key, value in zip(run.keys, run.values, strict=True)}
    assert values == {encode(key, encoding): repr(key).encode() for key in keys}


@pytest.mark.parametrize(("kind", "encoding"), [(pa.int64(), KeyEncoding.U64BE), (pa.string(), KeyEncoding.UTF8)])
def test_a_batch_without_rows_has_no_run(kind: pa.DataType, encoding: KeyEncoding) -> None:
    """Spark may send an empty batch."""
    assert list(rows(7, encoding).runs(batch([], 7, kind))) == []


def test_a_row_that_came_to_another_shard_is_not_written() -> None:
    """No reader would find it there."""
    wrong = pa.RecordBatch.from_arrays(
        [pa.array([(digest(5) + 1) % 4], pa.int32()), pa.array([5]), pa.array([b"v"])], names=[SHARD, KEY, VALUE]
    )
    with pytest.raises(ShardAssignmentError, match="the row with id 5 came to shard"):
        list(rows(4, KeyEncoding.U64BE).runs(wrong))


@pytest.mark.parametrize(
    ("keys", "kind", "encoding", "problem"),
    [
        ([-1], pa.int64(), KeyEncoding.U64BE, "id -1 is not from 0 to 9223372036854775807"),
        ([2**32], pa.int64(), KeyEncoding.U32BE, "id 4294967296 is not from 0 to 4294967295"),
        (["1"], pa.string(), KeyEncoding.U64BE, "has the type string"),
    ],
)
def test_a_key_out_of_range_is_named(keys: list[Any], kind: pa.DataType, encoding: KeyEncoding, problem: str) -> None:
    """The error has the range of the encoding."""
    with pytest.raises(KeyRangeError, match=problem):
        list(rows(2, encoding).runs(batch(keys, 2, kind)))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("encoding", [KeyEncoding.UTF8, KeyEncoding.RAW])
def test_a_text_that_is_not_utf_8_is_no_key(encoding: KeyEncoding, kind: pa.DataType) -> None:
    """Spark allows such texts, and no reader could name one. As bytes they are keys."""
    stored = pa.large_binary() if kind == pa.large_string() else pa.binary()
    keys = batch([b"\xff\x00", b"a"], 1, stored)
    texts = keys.set_column(1, KEY, keys.column(KEY).view(kind))
    with pytest.raises(KeyRangeError, match=r"id b'\\xff\\x00' is a text that is not UTF-8"):
        list(rows(1, encoding).runs(texts))
    assert [run.keys for run in rows(1, KeyEncoding.RAW).runs(keys)] == [[b"a", b"\xff\x00"]]
