"""Rows on their way into shards: from Arrow's columns to stored keys, each row's shard checked again."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from safewriter.snapshots.errors import KeyRangeError, ShardAssignmentError
from safewriter.snapshots.keys import KeyEncoding, digests, digests_of_integers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["KEY", "SHARD", "VALUE", "Run", "runs", "shards_of"]

SHARD: Final = "soal_shard"
KEY: Final = "soal_key"
VALUE: Final = "soal_value"


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring rows of one shard."""

    db_id: int
    keys: list[bytes]
    values: list[bytes]


def shards_of(keys: pa.Array, num_dbs: int) -> NDArray[np.int64]:
    """Return the shard of each key. Raises `KeyRangeError` for a null."""
    if keys.null_count:
        raise KeyRangeError("a key is null; drop such rows, or give them a key")
    if pa.types.is_integer(keys.type):
        hashes = digests_of_integers(keys.cast(pa.int64()).to_numpy())
    else:
        hashes = digests(keys.to_pylist())
    return (hashes % np.uint64(num_dbs)).astype(np.int64)


def runs(batch: pa.RecordBatch, num_dbs: int, encoding: KeyEncoding) -> Iterator[Run]:
    """Yield the runs of a batch that is sorted by shard. Raises `ShardAssignmentError` for a row in a wrong one."""
    keys = batch.column(batch.schema.get_field_index(KEY))
    assigned = batch.column(batch.schema.get_field_index(SHARD)).to_numpy()
    values = batch.column(batch.schema.get_field_index(VALUE))
    wrong = np.flatnonzero(shards_of(keys, num_dbs) != assigned)
    if wrong.size:
        row = int(wrong[0])
        raise ShardAssignmentError(f"the row with key {keys[row].as_py()!r} came to shard {assigned[row]}, not its own")
    stored = _stored(keys, encoding)
    bounds = [0, *(np.flatnonzero(np.diff(assigned)) + 1).tolist(), len(assigned)]
    for first, last in itertools.pairwise(bounds):
        if first < last:
            yield Run(int(assigned[first]), stored[first:last], values[first:last].to_pylist())


def _stored(keys: pa.Array, encoding: KeyEncoding) -> list[bytes]:
    limit = encoding.limit
    if limit is None:
        found = keys.to_pylist()
        return [key.encode() for key in found] if found and isinstance(found[0], str) else found
    if not pa.types.is_integer(keys.type):
        raise KeyRangeError(f"the key column has the type {keys.type}, and the encoding {encoding} asks for integers")
    numbers = keys.cast(pa.int64()).to_numpy()
    outside = np.flatnonzero((numbers < 0) | (numbers > min(limit - 1, 2**63 - 1)))
    if outside.size:
        key = int(numbers[outside[0]])
        raise KeyRangeError(f"key {key} is not from 0 to {limit - 1}, which the encoding {encoding} asks for")
    width = 8 if encoding is KeyEncoding.U64BE else 4
    buffer = numbers.astype(f">u{width}").tobytes()
    return [buffer[at : at + width] for at in range(0, len(buffer), width)]
