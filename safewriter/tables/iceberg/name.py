"""The name of a table that a catalog commits to, as Spark knows it: `catalog.namespace.table`."""

from __future__ import annotations

from dataclasses import dataclass

from safewriter.errors import UnsupportedError

__all__ = ["TableName"]

_PARTS_MIN = 3


@dataclass(frozen=True, slots=True)
class TableName:
    """A catalog of the session, and the table's identifier in it, namespace first."""

    catalog: str
    identifier: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Parse `catalog.namespace.table`; raises `UnsupportedError` for anything else, paths above all."""
        parts = tuple(part.strip("`") for part in text.split("."))
        if len(parts) < _PARTS_MIN or "/" in text or not all(parts):
            raise UnsupportedError(
                f"{text!r} is no name of an Iceberg table; write catalog.namespace.table, with the catalog as it is"
                " named in the session's settings (spark.sql.catalog.NAME)"
            )
        return cls(parts[0], parts[1:])

    @property
    def quoted(self) -> str:
        """The name as SQL takes it."""
        return ".".join(f"`{part}`" for part in (self.catalog, *self.identifier))

    def __str__(self) -> str:
        return ".".join((self.catalog, *self.identifier))
