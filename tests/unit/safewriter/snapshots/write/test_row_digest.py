"""The digest of a shard's rows does not depend on their order, and on all else."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from safewriter.snapshots.write.columns import DIGESTS
from safewriter.snapshots.write.row_digest import DigestRule, sums_of

NUMBERS = [-1, 2**63 - 1, -(2**63), 0, 5]


def batch(numbers: list[int]) -> pa.RecordBatch:
    columns = [pa.array(numbers, pa.int64()), pa.array([number // 2 for number in numbers], pa.int64())]
    return pa.RecordBatch.from_arrays(columns, names=list(DIGESTS))


def test_sums_of_parts_are_the_sums_of_the_whole_in_any_order() -> None:
    """A task gets a shard in several batches; the numbers have either sign."""
    whole = sums_of(batch(NUMBERS), 0, 5)
    turned = batch(NUMBERS[::-1])
    assert (sums_of(turned, 0, 2) + sums_of(turned, 2, 5)).tolist() == whole.tolist()
    unsigned = [number % 2**64 for number in NUMBERS]
    assert whole.tolist()[:2] == [sum(one & 0xFFFFFFFF for one in unsigned), sum(one >> 32 for one in unsigned)]


def test_each_part_changes_the_digest() -> None:
    """The rule, the number of rows, and each of the sums."""
    digest = DigestRule("rule").digest
    others = [
        DigestRule("other").digest(3, (1, 2, 3, 4)),
        digest(4, (1, 2, 3, 4)),
        *(digest(3, np.array([1, 2, 3, 4]) + np.eye(4, dtype=int)[at]) for at in range(4)),
    ]
    assert digest(3, np.array([1, 2, 3, 4], np.uint64).tolist()) == digest(3, (1, 2, 3, 4))
    assert len({digest(3, (1, 2, 3, 4)), *others}) == 7
