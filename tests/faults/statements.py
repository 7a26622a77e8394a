"""A victim's statements, and the table's rows after each: shared by the victims and the tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["STATEMENTS", "Statement"]

_BASE: Final = range(5)
_BATCH: Final = range(2, 9)
_MERGE: Final = (
    "MERGE INTO {table} t USING batch s ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET id = t.id + 100 WHEN NOT MATCHED THEN INSERT *"
)
_MERGED: Final = (0, 1, *(id_ + 100 for id_ in _BASE if id_ in _BATCH), *(id_ for id_ in _BATCH if id_ not in _BASE))


@dataclass(frozen=True, slots=True)
class Statement:
    """One write of ids. `properties` is None if it creates its table; `sql` is None if it is a DataFrame's write."""

    after: tuple[int, ...]
    sql: str | None = None
    properties: str | None = "'delta.enableDeletionVectors' = 'false'"

    @property
    def before(self) -> tuple[int, ...]:
        """The ids in the table before it."""
        return () if self.properties is None else tuple(_BASE)

    def prepare(self, spark: SparkSession, table: str) -> None:
        """Make the table, in one file."""
        if self.properties is not None:
            spark.sql(f"CREATE TABLE delta.`{table}` (id LONG) USING delta TBLPROPERTIES ({self.properties})")
            spark.range(_BASE.start, _BASE.stop, 1, 1).write.format("delta").mode("append").save(table)

    def run(self, spark: SparkSession, table: str) -> None:
        """Write."""
        batch = spark.range(_BATCH.start, _BATCH.stop, 1, 1)
        if self.sql is None:
            batch.write.format("delta").mode("append").save(table)
        else:
            batch.createOrReplaceTempView("batch")
            spark.sql(self.sql.format(table=f"delta.`{table}`"))

    def ids(self, spark: SparkSession, table: str) -> tuple[int, ...]:
        """Read the ids in the table."""
        return tuple(sorted(row.id for row in spark.read.format("delta").load(table).collect()))


STATEMENTS: Final = {
    "append": Statement(tuple(sorted((*_BASE, *_BATCH)))),
    "create": Statement(tuple(_BATCH), properties=None),
    "merge": Statement(tuple(sorted(_MERGED)), sql=_MERGE),
    "merge-with-deletion-vectors": Statement(
        tuple(sorted(_MERGED)), sql=_MERGE, properties="'delta.enableDeletionVectors' = 'true'"
    ),
}
