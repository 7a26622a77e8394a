"""The kind of an object in a table's folder, by its name alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["FilePrefix", "Kind", "kind_of", "prefix_of"]


class Kind(StrEnum):
    """The kinds of files that tables' writers leave behind. Nothing else is ever deleted."""

    DATA = "data"
    CHANGE_DATA = "change_data"
    DELETION_VECTOR = "deletion_vector"
    MARKED = "marked"


@dataclass(frozen=True, slots=True)
class FilePrefix:
    """The attempt that a file's name begins with; `write` is how its write key begins."""

    write: str
    epoch: int
    nonce: str


_CHANGES: Final = "_change_data/"
_VECTOR: Final = re.compile(r"deletion_vector_[0-9a-f-]{36}\.bin")
_PREFIX: Final = re.compile(r"(sw-[0-9a-f]{12})-(\d+)-([0-9a-f]{16})-")
_OTHER_FORMAT: Final = "metadata/"
"""The folder in which a table that can also be read as Iceberg keeps that format's metadata."""


def kind_of(key: str, partition_columns: Collection[str]) -> Kind | None:
    """Return the kind of a key, relative to the table; None for one that is never deleted.

    As for `VACUUM`, names that begin with `_` or `.` are hidden, except change data and the folders of partition
    columns.
    """
    *folders, name = key.split("/")
    if key.startswith(_OTHER_FORMAT) or name.startswith(("_", ".")):
        return None
    hidden = [folder for folder in folders if folder.startswith(("_", "."))]
    if key.startswith(_CHANGES):
        hidden.remove(_CHANGES[:-1])
    if any(folder.partition("=")[0] not in partition_columns or "=" not in folder for folder in hidden):
        return None
    if _VECTOR.fullmatch(name):
        return Kind.DELETION_VECTOR
    if not name.endswith(".parquet"):
        return None
    if _PREFIX.match(name):
        return Kind.MARKED
    # Under random prefixes change data has no folder of its own.
    return Kind.CHANGE_DATA if key.startswith(_CHANGES) or name.startswith("cdc-") else Kind.DATA


def prefix_of(key: str) -> FilePrefix | None:
    """Return the attempt whose file this is, if its name says one."""
    found = _PREFIX.match(key.rsplit("/", 1)[-1])
    return None if found is None else FilePrefix(found[1], int(found[2]), found[3])
