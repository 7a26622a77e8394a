"""Apache Iceberg as a format: tables of a catalog, whose commits are published by `success()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.errors import UnsupportedError
from safewriter.tables.iceberg.name import TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safewriter.record.document import Checkpoint
    from safewriter.tables.format import Format, Settling
    from safewriter.tables.iceberg.pointer import Pointer
    from safewriter.tables.session import Session
    from safewriter.tables.table import Table

__all__ = ["FORMAT"]


class _Iceberg:
    def parse(self, table: str) -> TableName:
        return TableName.parse(table)

    def session(self, spark: SparkSession, table: str) -> Session:
        from safewriter.tables.iceberg.session import IcebergSession

        return IcebergSession(spark, table)

    def table(self, document: Checkpoint, settling: Settling) -> Table:
        from safewriter.tables.iceberg.catalogs import configured, open_pointer
        from safewriter.tables.iceberg.pointer import UnreachedPointer
        from safewriter.tables.iceberg.table import IcebergTable

        name = TableName.parse(document.table)
        # In a session its own settings say it all.
        known = settling.secrets
        pointer: Pointer
        try:
            known = known or configured(name.catalog, settling.spark_settings, document.attempt.catalog)
            pointer = open_pointer(name, known, settling.table_store)
        except UnsupportedError as error:
            reason = error
            pointer = UnreachedPointer(name, lambda: reason)
        return IcebergTable(name, pointer, settling.clock, settling.may_go_on, settling.table_store, settling.rehearsal)


FORMAT: Final[Format] = _Iceberg()
