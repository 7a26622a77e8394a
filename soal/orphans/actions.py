"""The actions of a file of a Delta log, commit or checkpoint, JSON or Parquet: each as its kind and its fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from safewriter.parsing import parsed
from soal.orphans.references import UnreadableLogError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from arro3.core import Array

__all__ = ["actions_of"]

_NEEDED: Final = ("path", "deletionVector")
"""The fields of a file's action without its statistics, which fill most of a checkpoint and are not needed here."""


def actions_of(key: str, body: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every action, whose fields have the types that the protocol gives them as far as anything here reads them;
    `UnreadableLogError` if the file is damaged.
    """
    try:
        for kind, action in _parquet(body) if key.endswith(".parquet") else _json(body):
            _check(kind, action)
            yield kind, action
    except BaseException as error:
        # arro3 panics at damaged files, which Python sees as an exception that is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise UnreadableLogError(f"its {key} cannot be read: {error!r}") from error


def _check(kind: str, action: object) -> None:
    """Raise `ValueError` for what Delta does not write: a file that it might name would otherwise look like an orphan.

    Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#actions
    """
    if not isinstance(action, dict):
        raise ValueError(f"the action {kind} is no object")  # noqa: TRY004 - as for all that is damaged
    for name, fits in _FORMS.get(kind, {}).items():
        if not fits(action.get(name)):
            raise ValueError(f"the action {kind} has no {name} that can be read")
    vector = action.get("deletionVector") if kind in ("add", "remove") else None
    if vector is not None and not (
        isinstance(vector, dict) and _is_text(vector.get("storageType")) and _is_text(vector.get("pathOrInlineDv"))
    ):
        raise ValueError(f"the action {kind} has no deletionVector that can be read")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_name(value: object) -> bool:
    """Tell whether it is the name of a file in the folder of sidecars."""
    return isinstance(value, str) and value not in ("", ".", "..") and "/" not in value


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _are_texts(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(each, str) for each in value))


_FORMS: Final[dict[str, dict[str, Callable[[object], bool]]]] = {
    **{kind: {"path": _is_text} for kind in ("add", "remove", "cdc")},
    "sidecar": {"path": _is_name},
    "metaData": {"partitionColumns": _are_texts},
    "protocol": {
        "minReaderVersion": _is_number,
        "minWriterVersion": _is_number,
        "readerFeatures": _are_texts,
        "writerFeatures": _are_texts,
    },
}


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
            # A row of another kind is null, or has fields that are.
            yield from ((kind, row) for row in rows if row is not None and any(one is not None for one in row.values()))


def _files(column: Array) -> Iterator[dict[str, Any] | None]:
    from arro3.core import struct_field

    names = [field.name for field in column.type.fields]
    found = {name: struct_field(column, names.index(name)).to_pylist() for name in _NEEDED if name in names}
    vectors = found.get("deletionVector", [None] * len(column))
    for path, vector in zip(found["path"], vectors, strict=True):
        # A row of another kind has no path.
        yield {"path": path, "deletionVector": vector if vector and vector["storageType"] else None} if path else None
