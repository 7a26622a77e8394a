"""The actions of a file of a Delta log, commit or checkpoint, JSON or Parquet: each as its kind and its fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from safewriter.parsing import parsed
from soal.orphans.references import UnreadableLogError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from arro3.core import Array

__all__ = ["actions_of"]

_NEEDED: Final = ("path", "deletionVector")
"""The fields of a file's action without its statistics, which fill most of a checkpoint and are not needed here."""


def actions_of(key: str, body: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every action; `UnreadableLogError` if the file is damaged."""
    try:
        yield from _parquet(body) if key.endswith(".parquet") else _json(body)
    except BaseException as error:
        # arro3 panics at damaged files, which Python sees as an exception that is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise UnreadableLogError(f"its {key} cannot be read: {error!r}") from error


def _json(body: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in body.splitlines():
        if line.strip():
            yield from parsed(line).items()


def _parquet(body: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    from arro3.io import read_parquet  # a library that only old tables need

    for batch in read_parquet(body):
        for kind in batch.column_names:
            column = batch[kind]
            rows = _files(column) if kind in ("add", "remove") else column.to_pylist()
            yield from ((kind, row) for row in rows if row is not None)


def _files(column: Array) -> Iterator[dict[str, Any] | None]:
    from arro3.core import struct_field

    names = [field.name for field in column.type.fields]
    found = {name: struct_field(column, names.index(name)).to_pylist() for name in _NEEDED if name in names}
    vectors = found.get("deletionVector", [None] * len(column))
    for path, vector in zip(found["path"], vectors, strict=True):
        # A row of another kind has no path.
        yield {"path": path, "deletionVector": vector if vector and vector["storageType"] else None} if path else None
