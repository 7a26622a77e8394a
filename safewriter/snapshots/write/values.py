"""Values of a snapshot: which columns they come from, and how a task makes bytes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

__all__ = ["ValueSpec", "binary_col"]


class ValueSpec(Protocol):
    """One way to make values. It travels to the executors, so it must be picklable."""

    def column(self, df: DataFrame) -> Column:
        """Return the one column that travels with a row. Raises `ConfigValidationError`."""
        ...

    def encode(self, values: pa.Array) -> list[bytes]:
        """Make the bytes, in a task."""
        ...


@dataclass(frozen=True, slots=True)
class _BinaryColumn:
    name: str

    def column(self, df: DataFrame) -> Column:
        from pyspark.sql import functions

        from safewriter.snapshots.write.columns import existing

        return functions.coalesce(existing(df, self.name).cast("binary"), functions.lit(b""))

    def encode(self, values: pa.Array) -> list[bytes]:
        found: list[bytes] = values.to_pylist()
        return found


def binary_col(name: str) -> ValueSpec:
    """Take the values from a column of bytes or text; null is an empty value."""
    return _BinaryColumn(name)
