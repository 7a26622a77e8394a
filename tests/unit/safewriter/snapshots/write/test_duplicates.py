"""A build of a snapshot keeps one of several rows of a key, by rank or any, or fails and names the key."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safewriter.snapshots.config import Duplicates
from safewriter.snapshots.errors import KeyRangeError
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.routing.routing import HashRouting
from safewriter.snapshots.write.columns import KEY, RANK, SHARD, VALUE
from safewriter.snapshots.write.duplicates import Distinct
from safewriter.snapshots.write.rows import RowFormat
from safewriter.snapshots.write.values import binary_col

ROWS = RowFormat(HashRouting(1), KeyEncoding.U64BE, binary_col("v"), "id")
NAN = float("nan")


def order(rank: float | None) -> tuple[bool, bool, float]:
    """Return the sort key of Spark's order of doubles: null, numbers, NaN."""
    return (rank is not None, rank is not None and rank != rank, 0 if rank is None or rank != rank else rank)  # noqa: PLR0124 - NaN


def kept(
    rows: list[tuple[int, Any]], policy: Duplicates, size: int, kind: pa.DataType | None = None
) -> dict[int, bytes]:
    """Return the rows that stay of rows with key and rank, sorted as Spark sorts them, in batches of `size`."""
    ordered = sorted(rows, key=lambda row: order(row[1]), reverse=True)
    ordered = sorted(ordered, key=lambda row: row[0])
    distinct = Distinct(policy, ROWS)
    found: list[tuple[int, bytes]] = []
    for first in range(0, len(ordered), size):
        part = ordered[first : first + size]
        columns: list[pa.Array] = [
            pa.array([0] * len(part), pa.int32()),
            pa.array([key for key, _ in part]),
            pa.array([repr(rank).encode() for _, rank in part]),
        ]
        names = [SHARD, KEY, VALUE]
        if policy is Duplicates.LAST:
            columns.append(pa.array([rank for _, rank in part], kind or pa.float64()))
            names.append(RANK)
        for run in ROWS.runs(pa.RecordBatch.from_arrays(columns, names=names)):
            stays = distinct.of(run)
            found += zip((int.from_bytes(key, "big") for key in stays.keys), stays.values, strict=True)
    assert max(Counter(key for key, _ in found).values()) == 1
    return dict(found)


SIZES = pytest.mark.parametrize("size", [1, 2, 3, 100])


@SIZES
def test_the_row_with_the_highest_value_stays(size: int) -> None:
    """Batch boundaries do not matter; null is lower than all numbers, and NaN higher."""
    rows = [(1, 5.0), (1, -7.0), (2, None), (2, 0.0), (3, None), (4, NAN), (4, 1e9), (5, 1.0), (5, 2.0), (5, 1.0)]
    assert kept(rows, Duplicates.LAST, size) == {1: b"5.0", 2: b"0.0", 3: b"None", 4: b"nan", 5: b"2.0"}


@SIZES
@pytest.mark.parametrize("rank", [5.0, None, NAN])
def test_two_rows_with_the_highest_value_are_an_error(size: int, rank: float | None) -> None:
    """The error names the key: the data do not say which row to keep."""
    with pytest.raises(KeyRangeError, match="have the id 2 and the highest value in last_by"):
        kept([(1, 1.0), (2, rank), (2, None), (2, rank), (3, 1.0)], Duplicates.LAST, size)


@SIZES
@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", "Asia/Tokyo"), pa.date32()])
def test_a_moment_that_python_has_not_is_a_rank(size: int, kind: pa.DataType) -> None:
    """Years from 10000 on, here or in the session's time zone, are compared as well."""
    day = 1 if kind == pa.date32() else 86_400_000_000
    first, last = 2_932_896 * day, 9_000_000 * day
    assert kept([(1, first), (1, last), (2, last), (3, first)], Duplicates.LAST, size, kind) == {
        1: str(last).encode(),
        2: str(last).encode(),
        3: str(first).encode(),
    }
    with pytest.raises(KeyRangeError, match=r"have the id 1 and the highest value in last_by, a (timestamp|date)"):
        kept([(1, last), (1, last)], Duplicates.LAST, size, kind)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 50)), min_size=1), st.integers(1, 7))
def test_it_is_the_highest_of_all_rows_of_a_key(rows: list[tuple[int, int]], size: int) -> None:
    """It is an error if several rows have the highest rank."""
    highest = {key: max(rank for one, rank in rows if one == key) for key, _ in rows}
    if any(rows.count((key, rank)) > 1 for key, rank in highest.items()):
        with pytest.raises(KeyRangeError, match="nobody can say which stays"):
            kept(rows, Duplicates.LAST, size)
    else:
        expected = {key: repr(rank).encode() for key, rank in highest.items()}
        assert kept(rows, Duplicates.LAST, size) == expected


@SIZES
def test_any_row_stays(size: int) -> None:
    """One row of each key stays."""
    found = kept([(1, 1.0), (1, 2.0), (2, 3.0), (2, 3.0)], Duplicates.ANY, size)
    assert (found[1] in {b"1.0", b"2.0"}, found[2]) == (True, b"3.0")


@SIZES
def test_two_rows_of_one_key_are_an_error(size: int) -> None:
    """The error names the key."""
    with pytest.raises(KeyRangeError, match="two rows of shard 0 have the id 7; see duplicates="):
        kept([(6, 1.0), (7, 1.0), (7, 2.0)], Duplicates.ERROR, size)
    assert len(kept([(6, 1.0), (7, 1.0)], Duplicates.ERROR, size)) == 2
