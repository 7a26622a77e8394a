"""Apache Iceberg as a format: tables of a catalog, whose commits are published by `success()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.tables.iceberg.name import TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safewriter.record.document import Checkpoint
    from safewriter.tables.format import Format, Settling
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
        from safewriter.tables.iceberg.catalogs import open_pointer
        from safewriter.tables.iceberg.table import IcebergTable

        name = TableName.parse(document.table)
        pointer = open_pointer(name, {**document.attempt.catalog, **settling.secrets}, settling.table_store)
        return IcebergTable(name, pointer, settling.clock, settling.may_go_on, settling.rehearsal, settling.table_store)


FORMAT: Final[Format] = _Iceberg()
