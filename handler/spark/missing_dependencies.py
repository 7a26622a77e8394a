"""Dependencies that the image does not have, and the signs in a job's output that it needs one.

A job that needs one fails with a ClassNotFoundException, or with an even vaguer error. The helpful sentence is known
when the image is made; so image/spark/missing.toml holds it beside the list of jars that are left out.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Missing", "MissingWatch", "read_missing"]

_NO_CLASS: Final = re.compile(rb"(?:ClassNotFoundException|NoClassDefFoundError)[^\w]+([\w.$/]+)")


@dataclass(frozen=True, slots=True)
class Missing:
    """One thing that the image does not have.

    `jars`: PySpark's jars of it that are left out; `classes`: prefixes of the names of its classes; `signs`: other
    texts in a job's output that show it; `instead`: the advice for a job without it.
    """

    what: str
    jars: tuple[str, ...]
    classes: tuple[str, ...]
    signs: tuple[str, ...]
    instead: str

    @property
    def sentence(self) -> str:
        return f"the image does not have {self.what}: {self.instead}. A derived image can add it (image/derived)"


def read_missing(path: Path) -> tuple[Missing, ...]:
    """Read the list."""
    with path.open("rb") as file:
        rows = tomllib.load(file)["missing"]
    return tuple(
        Missing(
            what=row["what"],
            jars=tuple(row.get("jars", ())),
            classes=tuple(row.get("classes", ())),
            signs=tuple(row.get("signs", ())),
            instead=row["instead"],
        )
        for row in rows
    )


class MissingWatch:
    """Checks each line of a job's output; `seen` is the first missing thing that one of them shows."""

    def __init__(self, missing: tuple[Missing, ...]) -> None:
        self._missing = missing
        signs = [re.escape(sign.encode()) for row in missing for sign in row.signs]
        self._sign = re.compile(b"|".join(signs)) if signs else None
        self.seen: Missing | None = None

    def look(self, line: bytes) -> None:
        if self.seen is not None:
            return
        if match := _NO_CLASS.search(line):
            name = match[1].decode("ascii", "replace").replace("/", ".")
            self.seen = next((row for row in self._missing if name.startswith(row.classes)), None)
        elif self._sign is not None and (match := self._sign.search(line)):
            sign = match[0].decode()
            self.seen = next(row for row in self._missing if sign in row.signs)
