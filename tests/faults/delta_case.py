"""One guarded write to a Delta table, and its invariants under any fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.writer import SafeWriter
from tests.faults.case import Case
from tests.faults.statements import STATEMENTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.lake import Lake

__all__ = ["DeltaCase"]


class DeltaCase(Case):
    """One Delta table and one run."""

    def __init__(self, spark: SparkSession, s3: EmbeddedS3, lake: Lake, name: str) -> None:
        super().__init__(spark, s3, lake, name)
        self.lake, self.statement = lake, STATEMENTS[name]
        self.statement.prepare(spark, lake.table)
        self.base = len(lake.operations())

    def order(self, run_key: str) -> str:
        return f"{self.lake.table} {run_key} {self.name} write"

    def written(self) -> list[str]:
        """The operations in the log since the table was made."""
        return self.lake.operations()[self.base :]

    def check(self) -> None:
        self.lake.check()
        documents = self.lake.documents()
        landed = bool(documents) and documents[0].status == "committed"
        if landed or self.lake.version() >= 0:
            expected = self.statement.after if landed else self.statement.before
            assert self.statement.ids(self.spark, self.lake.table) == expected

    def write_again(self) -> SafeWriter:
        with SafeWriter(self.spark, self.lake.table) as block:
            self.statement.run(self.spark, block.table)
            block.success()
        return block

    def retry(self) -> None:
        """Retry; no file of any attempt is left."""
        super().retry()
        assert self.lake.orphans() == set()
