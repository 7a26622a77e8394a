"""Convert a task's Arrow columns to stored keys and values, and check each row's shard again."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from safewriter.snapshots.errors import KeyRangeError, ShardAssignmentError, ValueEncodingError
from safewriter.snapshots.format.encoding import KeyEncoding
from safewriter.snapshots.write.columns import DIGESTS, KEY, RANK, ROUTING, SHARD, VALUE
from safewriter.snapshots.write.row_digest import sums_of
from safewriter.snapshots.write.values import Unencodable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from safewriter.snapshots.routing.routing import Routing
    from safewriter.snapshots.write.values import ValueSpec

__all__ = ["RowFormat", "RowRun"]


@dataclass(frozen=True, slots=True)
class RowRun:
    """Consecutive rows of one shard, sorted by their keys.

    `repeated`: the indexes of rows that have the key of the previous row. `ranks`: the values of `last_by`, if any.
    `sums`: of the rows' digests, if they have any.
    """

    db_id: int
    keys: list[bytes]
    values: list[bytes]
    repeated: list[int]
    ranks: pa.Array | None
    sums: NDArray[np.uint64] | None = None


@dataclass(frozen=True, slots=True)
class RowFormat:
    """Converts the rows of a build. `key_col`: the key's name in the DataFrame, for messages."""

    routing: Routing
    encoding: KeyEncoding
    values: ValueSpec
    key_col: str

    def runs(self, batch: pa.RecordBatch) -> Iterator[RowRun]:
        """Yield the runs of a batch that is sorted by shard.

        Raises `ShardAssignmentError` for a row in the wrong shard, `KeyRangeError`, `ValueEncodingError`.
        """
        keys = batch.column(KEY)
        assigned = batch.column(SHARD).to_numpy()
        routing = [batch.column(f"{ROUTING}{number}") for number in range(len(self.routing.columns))]
        wrong = np.flatnonzero(self.routing.shards(keys, routing) != assigned)
        if wrong.size:
            row = int(wrong[0])
            raise ShardAssignmentError(
                f"the row with {self.key_col} {keys[row].as_py()!r} came to shard {assigned[row]}, not its own"
            )
        stored = self._stored(keys)
        try:
            values = self.values.encode(batch.column(VALUE))
        except Unencodable as error:
            raise ValueEncodingError(f"the row with {self.key_col} {keys[error.row].as_py()!r}: {error}") from error
        ranks = batch.column(RANK) if RANK in batch.schema.names else None
        has_digests = DIGESTS[0] in batch.schema.names
        repeated = np.flatnonzero(pc.equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)) + 1
        bounds = [0, *(np.flatnonzero(np.diff(assigned)) + 1).tolist(), len(assigned)]
        for first, last in itertools.pairwise(bounds):
            if first < last:
                yield RowRun(
                    int(assigned[first]),
                    stored[first:last],
                    values[first:last],
                    (repeated[(repeated > first) & (repeated < last)] - first).tolist(),
                    None if ranks is None else ranks[first:last],
                    sums_of(batch, first, last) if has_digests else None,
                )

    def shown(self, stored: bytes) -> str:
        """Format a stored key for a message."""
        return f"{self.key_col} {stored if self.encoding.limit is None else int.from_bytes(stored, 'big')!r}"

    def _stored(self, keys: pa.Array) -> list[bytes]:
        limit = self.encoding.limit
        if limit is None:
            stored: list[bytes] = keys.cast(pa.large_binary()).to_pylist()
            if pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type):
                self._check_text(stored)
            return stored
        if not pa.types.is_integer(keys.type):
            raise KeyRangeError(
                f"the key column {self.key_col} has the type {keys.type}, and the encoding {self.encoding} asks for"
                " integers"
            )
        numbers = keys.cast(pa.int64()).to_numpy()
        outside = np.flatnonzero((numbers < 0) | (numbers > limit - 1))
        if outside.size:
            key = int(numbers[outside[0]])
            raise KeyRangeError(
                f"{self.key_col} {key} is not from 0 to {limit - 1}, which the encoding {self.encoding} asks for"
            )
        width = 8 if self.encoding is KeyEncoding.U64BE else 4
        buffer = numbers.astype(f">u{width}").tobytes()
        return [buffer[at : at + width] for at in range(0, len(buffer), width)]

    def _check_text(self, keys: list[bytes]) -> None:
        for key in keys:
            try:
                key.decode()
            except UnicodeDecodeError:
                raise KeyRangeError(f"{self.key_col} {key!r} is a text that is not UTF-8") from None
