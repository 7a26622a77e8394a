"""One guarded write to an Iceberg table, and its invariants under any fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.writer import SafeWriter
from soal.testing.s3.rules import Match
from tests.faults.case import Case
from tests.faults.iceberg_victim import STATEMENTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from soal.testing.s3.embedded import EmbeddedS3
    from tests.support.ice import Catalog

__all__ = ["AFTER", "BASE", "DATA", "TOLD", "IcebergCase"]

DATA = Match(operations={"PutObject"}, key=r"/data/.*\.parquet")
TOLD = Match(operations={"PutObject"}, key_class="checkpoint")
"""The document: in an undisturbed write the first is the claim, the second the verdict."""

BASE = tuple(range(5))
AFTER = {
    "append": tuple(sorted((*BASE, *range(2, 9)))),
    "merge": (0, 1, 5, 6, 7, 8, 102, 103, 104),
    "overwrite": tuple(range(2, 9)),
}


class IcebergCase(Case):
    """One Iceberg table and one run."""

    def __init__(self, spark: SparkSession, s3: EmbeddedS3, catalog: Catalog, name: str) -> None:
        self.ice = catalog.table(s3.observer())
        super().__init__(spark, s3, self.ice, name)
        # The publishing request: to a server, or the metadata file for the database.
        self.publication = Match(operations={"CatalogChange"})
        if catalog.spark["type"] != "rest":
            self.publication = Match(operations={"PutObject"}, key_class="iceberg/metadata")
        spark.sql(f"CREATE TABLE {self.ice.name} (id LONG) USING iceberg")
        spark.range(BASE[0], BASE[-1] + 1, 1, 1).writeTo(self.ice.name).append()

    def order(self, run_key: str) -> str:
        return f"{self.ice.name} {run_key} {self.name}"

    def write_one(self, id_: int) -> None:
        """Append one row, as a write of its own."""
        with SafeWriter(self.spark, self.ice.name, format="iceberg", step=str(id_)) as block:
            self.spark.range(id_, id_ + 1, 1, 1).writeTo(block.table).append()
            block.success()

    def ids(self) -> tuple[int, ...]:
        self.spark.catalog.refreshTable(self.ice.name)
        return tuple(sorted(row.id for row in self.spark.table(self.ice.name).collect()))

    def check(self) -> None:
        self.ice.check()
        assert self.ice.strays() == set()
        documents = self.ice.documents()
        landed = bool(documents) and documents[0].status == "committed"
        assert self.ids() == (AFTER[self.name] if landed else BASE)

    def write_again(self) -> SafeWriter:
        with SafeWriter(self.spark, self.ice.name, format="iceberg") as block:
            self.spark.sql(STATEMENTS[self.name].format(table=block.table))
            block.success()
        return block

    def retry(self) -> None:
        """Retry; main's history shows only what was published, and only data files of a skipped block are left."""
        super().retry()
        assert not [one for one in self.ice.orphans() if one.endswith(".parquet") and "-skipped-" not in one]
        assert len(self.ice.history()) == 2
