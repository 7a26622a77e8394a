"""The digest of a shard's rows, in any order: an incremental build takes over a shard that has the same one.

Spark computes a SHA-256 for each row, which no other row has, and from it two numbers. Their sums over a shard's rows,
with the number of rows and the rule of the build, make the digest. So Spark finds the digests of all shards by one
reading, without moving a row, and a task finds that of a shard while it writes the rows.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from safewriter.snapshots.write.columns import DIGESTS, KEY, RANK, SHARD, VALUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from safewriter.snapshots.config import Duplicates
    from safewriter.snapshots.format.encoding import KeyEncoding
    from safewriter.snapshots.routing.routing import Routing

__all__ = ["ROWS_DIGEST", "DigestRule", "Sums", "sums_by_shard", "sums_of", "with_digests"]

ROWS_DIGEST: Final = "rows_digest"
"""The member of a shard's `writer_info` in the manifest."""
_VERSION: Final = 1
_LOW: Final = 0xFFFFFFFF
_ROW: Final = "__soal_row"

Sums = tuple[int, int, int, int]
"""The sums of the low and of the high halves of the two numbers: in halves, no sum of 2^31 rows exceeds 64 bits."""


@dataclass(frozen=True, slots=True)
class DigestRule:
    """How a build makes files of rows, as text: equal rows under another rule have another digest."""

    text: str

    @classmethod
    def of(
        cls, rows: DataFrame, routing: Routing, encoding: KeyEncoding, duplicates: Duplicates, key_col: str
    ) -> DigestRule:
        """Return the rule of a build. `rows`: its rows with the columns that the tasks get."""
        # Whether a column may be null is no matter of its rows, and Spark finds it anew for each plan.
        types = {name: rows.schema[name].dataType.simpleString() for name in (KEY, VALUE, RANK) if name in rows.columns}
        parts: list[Any] = [_VERSION, routing.num_dbs, routing.document(), encoding.value, duplicates.value]
        return cls(json.dumps([*parts, key_col, types], sort_keys=True))

    def digest(self, count: int, sums: Sequence[int]) -> str:
        """Return the digest of a shard with so many rows."""
        return hashlib.sha256(json.dumps([self.text, count, *map(int, sums)]).encode()).hexdigest()


def with_digests(rows: DataFrame) -> DataFrame:
    """Return the rows with the two numbers of each. The values are bytes, or a structure that becomes JSON."""
    kinds = dict(rows.dtypes)
    columns = [f"`{name}`" for name in rows.columns]
    if kinds[KEY] in ("string", "binary"):
        key, head = f"CAST({KEY} AS BINARY)", f"CAST(octet_length({KEY}) AS STRING)"
    else:
        key, head = "X''", f"CAST({KEY} AS STRING)"
    value = VALUE
    if kinds[VALUE] != "binary":
        value = f"CAST(to_json({VALUE}, map('ignoreNullFields', 'false')) AS BINARY)"
    rank = f", ' ', CAST(xxhash64({RANK}) AS STRING)" if RANK in kinds else ""
    # The head ends where the first letter is neither digit nor sign nor blank, and says how long the key is.
    row = f"sha2(concat(CAST(concat({head}{rank}, ':') AS BINARY), {key}, {value}), 256) AS {_ROW}"
    numbers = (f"xxhash64({number}, {_ROW}) AS {name}" for number, name in enumerate(DIGESTS))
    return rows.selectExpr(*columns, row).selectExpr(*columns, *numbers)


def sums_by_shard(rows: DataFrame) -> dict[int, tuple[int, Sums]]:
    """Return the number of rows and the sums of each shard that has rows; `rows` with their shards and numbers."""
    from pyspark.sql import functions

    halves = [
        f"sum({half}) AS sum{at}"
        for at, half in enumerate(
            half for name in DIGESTS for half in (f"{name} & {_LOW}L", f"shiftrightunsigned({name}, 32)")
        )
    ]
    found = rows.groupBy(SHARD).agg(functions.expr("count(1)"), *map(functions.expr, halves)).collect()
    return {row[0]: (row[1], (row[2], row[3], row[4], row[5])) for row in found}


def sums_of(batch: pa.RecordBatch, first: int, last: int) -> NDArray[np.uint64]:
    """Return the sums of some rows of a batch."""
    halves = []
    for name in DIGESTS:
        numbers = batch.column(name)[first:last].to_numpy().view(np.uint64)
        halves += [(numbers & np.uint64(_LOW)).sum(), (numbers >> np.uint64(32)).sum()]
    return np.array(halves, np.uint64)
