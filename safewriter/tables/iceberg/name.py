"""The name of a table that a catalog commits to, as Spark knows it: `catalog.namespace.table[.branch_NAME]`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from safewriter.errors import UnsupportedError

__all__ = ["MAIN", "TableName"]

MAIN: Final = "main"
"""The branch that readers see (Iceberg's `SnapshotRef.MAIN_BRANCH`)."""
_PARTS_MIN: Final = 3
_BRANCH: Final = "branch_"
_PART: Final = r"`((?:[^`]|``)+)`|([^.`]+)"


@dataclass(frozen=True, slots=True)
class TableName:
    """A catalog of the session, the table's identifier in it, namespace first, and the branch that a write is for."""

    catalog: str
    identifier: tuple[str, ...]
    target: str = MAIN

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Parse `catalog.namespace.table` or, as Iceberg writes it, `catalog.namespace.table.branch_NAME`; a part that
        is no plain word stands in backticks, as in SQL. Raises `UnsupportedError` for anything else, paths above all.
        """
        if not re.fullmatch(rf"(?:{_PART})(?:\.(?:{_PART}))*", text) or "/" in text:
            raise UnsupportedError(
                f"{text!r} is no name of an Iceberg table; write catalog.namespace.table, with the catalog as it is"
                " named in the session's settings (spark.sql.catalog.NAME)"
            )
        parts = tuple(quoted.replace("``", "`") or plain for quoted, plain in re.findall(_PART, text))
        target = MAIN
        if len(parts) > _PARTS_MIN and parts[-1].startswith(_BRANCH):
            parts, target = parts[:-1], parts[-1].removeprefix(_BRANCH)
        if len(parts) < _PARTS_MIN or not target:
            raise UnsupportedError(f"{text!r} is no full name of an Iceberg table; write catalog.namespace.table")
        return cls(parts[0], parts[1:], target)

    @property
    def quoted(self) -> str:
        """The table's name as SQL takes it, without the branch."""
        return _joined((self.catalog, *self.identifier), always=True)

    def staged(self, attempt: str) -> str:
        """Return the table's name in the catalog of the open blocks, under which an attempt's statements write it."""
        return _joined(("safewriter", attempt, *self.identifier, *self._branch), always=True)

    @property
    def _branch(self) -> tuple[str, ...]:
        return () if self.target == MAIN else (f"{_BRANCH}{self.target}",)

    def __str__(self) -> str:
        """Return the one text of the name: parts are in backticks only where they must be."""
        return _joined((self.catalog, *self.identifier, *self._branch), always=False)


def _joined(parts: tuple[str, ...], *, always: bool) -> str:
    return ".".join(
        part if not always and re.fullmatch(r"[^.`]+", part) else f"`{part.replace('`', '``')}`" for part in parts
    )
