"""The environment of a script: its session, its table, and common statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from safewriter import SafeWriter
from tests.lab.campaign.wrong.rows import BATCH

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from safewriter.record.checkpoints import Checkpoints
    from tests.lab.experiment.plan import Format

__all__ = ["WrongJob"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongJob:
    """One attempt of a script. `folder`: a local one. `lake`: the place of its other tables, on S3.

    `attempt`: counted from 1. `checkpoints`: those of its run alone. `start_spark` returns a session of a running
    context, and starts one if the script has stopped it.
    """

    spark: SparkSession
    table: str
    table_format: Format
    attempt: int
    lake: str
    folder: Path
    checkpoints: Checkpoints
    start_spark: Callable[[], SparkSession]

    def guard(
        self,
        table: str | None = None,
        *,
        spark: SparkSession | None = None,
        step: str | None = None,
        commit_point: Literal["write", "success"] = "write",
    ) -> SafeWriter:
        """Return a guard of the script's table, or of another one of its format."""
        return SafeWriter(
            spark or self.spark,
            table or self.table,
            format=self.table_format,
            step=step,
            commit_point=commit_point,
        )

    def frame(self, ids: Sequence[int] = BATCH) -> DataFrame:
        """Return rows with these consecutive ids, in one task."""
        return self.spark.range(ids[0], ids[-1] + 1, 1, 1)

    def append(self, table: str, ids: Sequence[int] = BATCH) -> None:
        """Append rows to a table of the script's format."""
        self.append_frame(table, self.frame(ids))

    def append_frame(self, table: str, frame: DataFrame) -> None:
        """Append a frame."""
        if self.table_format == "iceberg":
            frame.writeTo(table).append()
        else:
            frame.write.format("delta").mode("append").save(table)

    def merge(self, table: str) -> None:
        """Move the ids 3 and 4 by a hundred, and insert 5, 6 and 7."""
        self.sql(
            "MERGE INTO {table} t USING (SELECT id FROM range(3, 8, 1, 1)) s ON t.id = s.id"
            " WHEN MATCHED THEN UPDATE SET id = t.id + 100 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
            table,
        )

    def sql(self, statement: str, table: str | None = None) -> DataFrame:
        """Run a statement; `{table}` stands for the script's table, or another one of its format."""
        return self.spark.sql(statement.format(table=self.named(table or self.table)))

    def named(self, table: str) -> str:
        """Return a table's name in SQL."""
        return f"delta.`{table}`" if self.table_format == "delta" else table

    def count(self, table: str) -> int:
        """Count the rows of a table in the script's session."""
        frame = (
            self.spark.table(table) if self.table_format == "iceberg" else self.spark.read.format("delta").load(table)
        )
        return frame.count()

    def other(self, name: str) -> str:
        """Return the path of another Delta table."""
        return f"{self.lake}/{name}"

    def append_to_other(self, name: str, ids: Sequence[int]) -> None:
        """Append rows to another Delta table, without a guard, such as an audit table."""
        self.frame(ids).write.format("delta").mode("append").save(self.other(name))
