"""Delta Lake as a format: tables at paths, whose commits pass the gate in the log store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.identity import canonical_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safewriter.objects.location import Location
    from safewriter.record.document import Checkpoint
    from safewriter.tables.format import Format, Settling
    from safewriter.tables.session import Session
    from safewriter.tables.table import Table

__all__ = ["FORMAT"]


class _Delta:
    def parse(self, table: str) -> Location:
        return canonical_table(table)

    def session(self, spark: SparkSession, table: str) -> Session:
        from safewriter.tables.delta.session import DeltaSession

        return DeltaSession(spark, table)

    def table(self, document: Checkpoint, settling: Settling) -> Table:
        from safewriter.tables.delta.table import DeltaTable

        store = settling.table_store(document.table)
        return DeltaTable(store, settling.checkpoints, settling.clock, may_go_on=settling.may_go_on)


FORMAT: Final[Format] = _Delta()
