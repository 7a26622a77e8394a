"""Rows with the same key: keep the first one, or fail the build.

The rows of a shard are sorted by key, and the rows of a key by rank, the highest first. So the first row of a key is
the one to keep, even if a batch ends between the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import compress
from typing import TYPE_CHECKING

import pyarrow as pa

from safewriter.snapshots.config import Duplicates
from safewriter.snapshots.errors import KeyRangeError

if TYPE_CHECKING:
    from safewriter.snapshots.write.rows import RowFormat, RowRun

__all__ = ["Distinct"]


@dataclass(slots=True)
class Distinct:
    """Removes duplicate keys from the rows of one shard."""

    policy: Duplicates
    rows: RowFormat
    _key: bytes | None = None
    _rank: pa.Scalar | None = None
    """The rank of the row kept for `_key`, as an Arrow value: Python has no year 10000."""

    def of(self, run: RowRun) -> RowRun:
        """Return the rows to keep. Raises `KeyRangeError` for a duplicate that the policy does not allow."""
        repeated = [0, *run.repeated] if run.keys[0] == self._key else run.repeated
        if repeated and self.policy is Duplicates.ERROR:
            key = self.rows.shown(run.keys[repeated[0]])
            raise KeyRangeError(f"two rows of shard {run.db_id} have the {key}; see duplicates=")
        self._key = run.keys[-1]
        if not repeated:
            self._rank = None if run.ranks is None else run.ranks[-1]
            return run
        stays = [True] * len(run.keys)
        for at in repeated:
            stays[at] = False
        self._check_ranks(run, stays)
        return replace(run, keys=list(compress(run.keys, stays)), values=list(compress(run.values, stays)), repeated=[])

    def _check_ranks(self, run: RowRun, stays: list[bool]) -> None:
        if run.ranks is None:
            return
        for at, rank in enumerate(run.ranks):
            if stays[at]:
                self._rank = rank
            elif _equal(rank, self._rank):
                raise KeyRangeError(
                    f"two rows of shard {run.db_id} have the {self.rows.shown(run.keys[at])} and the highest value in"
                    f" last_by, {_shown(rank)}: nobody can say which stays"
                )


def _equal(value: pa.Scalar, other: pa.Scalar) -> bool:
    return value.equals(other) or (_is_nan(value) and _is_nan(other))


def _is_nan(rank: pa.Scalar) -> bool:
    return pa.types.is_floating(rank.type) and rank.is_valid and math.isnan(rank.as_py())


def _shown(rank: pa.Scalar) -> str:
    try:
        return repr(rank.as_py())
    except Exception:  # noqa: BLE001 - a far date, a time zone or a text that Python does not support
        return f"a {rank.type}"
