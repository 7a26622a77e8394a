"""The rows of the benchmark of snapshots: unique keys in random order, each with 107 bytes of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["keys", "values", "write_files"]

_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_MODULUS: Final = np.uint64(2**62)
_FILES: Final = 4
_BLOCK: Final = 100_000


def keys(numbers: Sequence[int]) -> NDArray[np.int64]:
    """Return the keys of the rows with these numbers. An odd factor makes them unique below 2^62."""
    with np.errstate(over="ignore"):
        return (np.array(numbers, dtype=np.uint64) * _FACTOR % _MODULUS).astype(np.int64)


def values(numbers: Sequence[int]) -> list[bytes]:
    """Return their values."""
    return [
        b'{"id":%019d,"name":"customer-%014d","city":"city-%04d","score":%06d,"active":true}'
        % (number * 7_919, number, number % 5_000, number * 37 % 1_000_000)
        for number in numbers
    ]


def write_files(rows: int, folder: Path, changed: Collection[int] = frozenset()) -> None:
    """Write the rows into four Parquet files. `changed`: the numbers of those that have another value."""
    folder.mkdir()
    schema = pa.schema([("id", pa.int64()), ("v", pa.binary())])
    bounds = [rows * number // _FILES for number in range(_FILES + 1)]
    for file in range(_FILES):
        with pq.ParquetWriter(folder / f"{file}.parquet", schema) as writer:
            for first in range(bounds[file], bounds[file + 1], _BLOCK):
                block = range(first, min(first + _BLOCK, bounds[file + 1]))
                found = [
                    value[::-1] if number in changed else value
                    for number, value in zip(block, values(block), strict=True)
                ]
                writer.write_table(pa.table([pa.array(keys(block)), found], schema=schema))
