"""Which table formats are guarded, and how a settler opens a table of each: the only place that knows them all.

An adapter is imported when a table of its format is met, so that who settles Delta tables needs nothing of Iceberg.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from safewriter.errors import UnsupportedError
from safewriter.identity import canonical_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from safewriter.deadline import Clock
    from safewriter.objects.location import Location
    from safewriter.objects.store import ObjectStore
    from safewriter.record.checkpoints import Checkpoints
    from safewriter.record.document import Checkpoint
    from safewriter.tables.iceberg.name import TableName
    from safewriter.tables.session import Session
    from safewriter.tables.table import Table

__all__ = ["TableOpener", "canonical", "catalog_of", "open_session"]


def canonical(table: str, format: str) -> Location | TableName:  # noqa: A002 - the word of Spark's own API
    """Return the one name of a table; `UnsupportedError` for a format or a name that is not guarded."""
    if format == "delta":
        return canonical_table(table)
    if format == "iceberg":
        from safewriter.tables.iceberg.name import TableName

        return TableName.parse(table)
    raise UnsupportedError(f"format {format!r} is not guarded; use 'delta' or 'iceberg'")


def open_session(spark: SparkSession, table: str, format: str) -> Session:  # noqa: A002
    """Return the format's side of a Spark session for one block."""
    if format == "iceberg":
        from safewriter.tables.iceberg.session import IcebergSession

        return IcebergSession(spark, table)
    from safewriter.tables.delta.session import DeltaSession

    return DeltaSession(spark, table)


def catalog_of(session: Session, format: str) -> dict[str, str]:  # noqa: A002
    """Return how a session's catalog is reached, without secrets; nothing where a table lies at a path."""
    if format != "iceberg":
        return {}
    from safewriter.tables.iceberg.catalogs import without_secrets

    return without_secrets(session.secrets)


@dataclass(frozen=True, slots=True)
class TableOpener:
    """What opens the table of a document. `table_store` opens an object store by its `s3://` URI; `secrets` are what a
    catalog needs beyond the document, where the session that writes has them.
    """

    table_store: Callable[[str], ObjectStore]
    checkpoints: Checkpoints
    clock: Clock
    may_go_on: Callable[[], bool] = lambda: True
    secrets: Mapping[str, str] = field(default_factory=dict)
    rehearsal: list[str] | None = None
    """If there is one, nothing is committed to a catalog, but noted there, a line each."""

    def open(self, document: Checkpoint) -> Table:
        """Return the table that a document is about; `UnsupportedError` for a format that is not known here."""
        if document.format == "delta":
            from safewriter.tables.delta.table import DeltaTable

            store = self.table_store(document.table)
            return DeltaTable(store, self.checkpoints, self.clock, may_go_on=self.may_go_on)
        if document.format == "iceberg":
            from safewriter.tables.iceberg.catalogs import open_pointer
            from safewriter.tables.iceberg.name import TableName
            from safewriter.tables.iceberg.table import IcebergTable

            name = TableName.parse(document.table)
            catalog = {**document.attempt.catalog, **self.secrets}
            pointer = open_pointer(name, catalog, self.table_store)
            return IcebergTable(name, pointer, self.clock, self.may_go_on, self.rehearsal)
        raise UnsupportedError(f"{document.table}: format {document.format!r} is not guarded by this version")
