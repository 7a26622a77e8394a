"""The name of a table that a catalog commits to, as Spark knows it: `catalog.namespace.table[.branch_NAME]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyiceberg.table.refs import MAIN_BRANCH

from safewriter.errors import UnsupportedError

__all__ = ["TableName"]

_PARTS_MIN: Final = 3
_BRANCH: Final = "branch_"


@dataclass(frozen=True, slots=True)
class TableName:
    """A catalog of the session, the table's identifier in it, namespace first, and the branch that a write is for."""

    catalog: str
    identifier: tuple[str, ...]
    target: str = MAIN_BRANCH

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Parse `catalog.namespace.table` or, as Iceberg writes it, `catalog.namespace.table.branch_NAME`; raises
        `UnsupportedError` for anything else, paths above all.
        """
        parts = tuple(part.strip("`") for part in text.split("."))
        target = MAIN_BRANCH
        if len(parts) > _PARTS_MIN and parts[-1].startswith(_BRANCH):
            parts, target = parts[:-1], parts[-1].removeprefix(_BRANCH)
        if len(parts) < _PARTS_MIN or "/" in text or not all((*parts, target)):
            raise UnsupportedError(
                f"{text!r} is no name of an Iceberg table; write catalog.namespace.table, with the catalog as it is"
                " named in the session's settings (spark.sql.catalog.NAME)"
            )
        return cls(parts[0], parts[1:], target)

    @property
    def table(self) -> str:
        """The table's name without the branch."""
        return ".".join((self.catalog, *self.identifier))

    @property
    def quoted(self) -> str:
        """The table's name as SQL takes it."""
        return ".".join(f"`{part}`" for part in (self.catalog, *self.identifier))

    def __str__(self) -> str:
        branch = () if self.target == MAIN_BRANCH else (f"{_BRANCH}{self.target}",)
        return ".".join((self.table, *branch))
