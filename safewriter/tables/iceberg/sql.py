"""The pointer in a database: a row of Iceberg's table for JDBC catalogs, of either of its two versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.tables.iceberg.metadata import Fence, Held, MetadataFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.catalog.sql import SqlCatalog

    from safewriter.objects.store import ObjectStore
    from safewriter.tables.iceberg.name import TableName

__all__ = ["SqlPointer"]

_ROW: Final = "WHERE catalog_name = :catalog AND table_namespace = :namespace AND table_name = :table"
_READ: Final = f"SELECT * FROM iceberg_tables {_ROW}"  # noqa: S608 - both are constants; the first version lacks a column
_SWAP: Final = (
    "UPDATE iceberg_tables SET metadata_location = :new, previous_metadata_location = :old"  # noqa: S608 - as above
    f" {_ROW} AND metadata_location = :old"
)


class SqlPointer:
    """One row. The metadata file's location is its version: no two files have one name."""

    def __init__(
        self, name: TableName, opened: Callable[[], SqlCatalog], table_store: Callable[[str], ObjectStore]
    ) -> None:
        self._row = {
            "catalog": name.catalog,
            "namespace": ".".join(name.identifier[:-1]),
            "table": name.identifier[-1],
        }
        self._opened = opened
        self._table_store = table_store

    def read(self) -> Held | None:
        engine = self._opened().engine
        from sqlalchemy import text  # whoever lacks it has been told so by now

        with engine.connect() as connection:
            found = connection.execute(text(_READ), self._row).mappings().one_or_none()
        if found is None or found.get("iceberg_type") not in (None, "TABLE"):
            return None  # or a view
        file = MetadataFile.read(found["metadata_location"], self._table_store)
        return Held(file.metadata, file)

    def commit(self, held: Held, fence: Fence) -> bool:
        engine = self._opened().engine
        from sqlalchemy import text

        locations = {"old": held.version.location, "new": held.version.write_fenced(fence, self._table_store)}
        with engine.begin() as connection:
            return connection.execute(text(_SWAP), {**self._row, **locations}).rowcount == 1
