"""The pointer in a database: a row of Iceberg's table for JDBC catalogs, of either of its two versions."""

from __future__ import annotations

from typing import Any, Final

from safewriter.tables.iceberg.file_pointer import FilePointer

__all__ = ["SqlPointer"]

_ROW: Final = "WHERE catalog_name = :catalog AND table_namespace = :namespace AND table_name = :table"
_READ: Final = f"SELECT * FROM iceberg_tables {_ROW}"  # noqa: S608 - both are constants; the first version lacks a column
_SWAP: Final = (
    "UPDATE iceberg_tables SET metadata_location = :new, previous_metadata_location = :old"  # noqa: S608 - as above
    f" {_ROW} AND metadata_location = :old"
)


class SqlPointer(FilePointer):
    """One row."""

    def _location(self) -> str | None:
        for row in self._executed(_READ):
            if row.get("iceberg_type") in (None, "TABLE"):  # or it is a view; the first version has no such column
                return str(row["metadata_location"])
        return None

    def _swap(self, old: str, new: str) -> bool:
        return bool(self._executed(_SWAP, old=old, new=new) == 1)

    def _executed(self, statement: str, **values: str) -> Any:  # noqa: ANN401 - SQLAlchemy's rows, which an image may lack
        """Return the rows that a statement has read, or the number of those that it has changed."""
        engine = self.opened()
        from sqlalchemy import text  # catalogs.py has refused an image that lacks it

        *namespace, table = self.name.identifier
        row = {"catalog": self.name.catalog, "namespace": ".".join(namespace), "table": table}
        with engine.begin() as connection:
            result = connection.execute(text(statement), {**row, **values})
            return result.mappings().all() if result.returns_rows else result.rowcount
