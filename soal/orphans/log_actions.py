"""The actions in a file of a Delta log (commit or checkpoint, JSON or Parquet), and the files to which they refer.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from safewriter.objects import Location
from safewriter.parsing import parsed
from safewriter.tables.delta.vectors import relative_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from arro3.core import Array

_FILES: Final = frozenset({"add", "remove", "cdc"})
_OTHERS: Final = frozenset(
    {"checkpointMetadata", "commitInfo", "domainMetadata", "metaData", "protocol", "sidecar", "txn"}
)

FEATURES: Final = frozenset(
    {
        "allowColumnDefaults",
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "checkpointProtection",
        "clustering",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "icebergCompatV1",
        "icebergCompatV2",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
        "variantType-preview",
    }
)
"""Table features under which a log refers to files only in the ways that this module reads."""
_READER_MAX: Final = 3
_WRITER_MAX: Final = 7

_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/.*|/.*", re.DOTALL)
_NEEDED: Final = ("path", "deletionVector")
"""The needed fields of a file's action. Its statistics make up most of a checkpoint."""


class UnreadableLogError(Exception):
    """The log contains something unknown, so that no file can be called an orphan."""

    todo = "clean it with VACUUM"


class NoTableError(UnreadableLogError):
    """The folder holds no Delta table."""

    todo = "check the path: a Delta table's folder has `_delta_log` in it"


class SharedFolderError(UnreadableLogError):
    """The folder also holds the data of a table that the log does not tell of."""

    todo = "move one of the two tables: neither VACUUM nor this command knows the other one's files"


def is_known(kind: str) -> bool:
    """Return whether this module knows this kind of action."""
    return kind in _FILES or kind in _OTHERS


def file_keys(kind: str, action: Mapping[str, Any], table: Location) -> set[str]:
    """Return the keys, relative to the table, of all files to which an action refers, in every spelling.

    Raises `UnreadableLogError` if it refers to a file outside the table's folder.
    """
    if kind not in _FILES:
        return set()
    vector = action.get("deletionVector") or {}
    return _path_keys(str(action["path"]), table) | (_vector_keys(vector, table) if vector else set())


def _path_keys(path: str, table: Location) -> set[str]:
    """Return a path as it is and percent-decoded: some engines do not encode paths, and an extra key is harmless."""
    if not _ABSOLUTE.fullmatch(path):
        return {path, unquote(path)}
    try:
        location = Location.parse(path)
    except ValueError as error:
        raise UnreadableLogError(f"it refers to {path!r}, which is not in the table's bucket") from error
    start = f"{table.key}/"
    keys = {key.removeprefix(start) for key in (location.key, unquote(location.key)) if key.startswith(start)}
    if location.bucket != table.bucket or not keys:
        raise UnreadableLogError(
            f"it refers to {path!r}, which is not in the table's folder: it is a shallow clone of another table"
        )
    return keys


def _vector_keys(vector: Mapping[str, Any], table: Location) -> set[str]:
    """Return the keys of a deletion vector: none if inline, else a file named by UUID or by path."""
    if vector.get("storageType") == "p":
        return _path_keys(str(vector.get("pathOrInlineDv")), table)
    try:
        key = relative_key(vector)
    except ValueError as error:
        raise UnreadableLogError(f"it holds {error}") from error
    return set() if key is None else {key}


def protocol_obstacle(protocol: Mapping[str, Any]) -> str | None:
    """Return why this module cannot judge a table with this protocol, or None."""
    reader, writer = int(protocol.get("minReaderVersion") or 1), int(protocol.get("minWriterVersion") or 1)
    if reader > _READER_MAX or writer > _WRITER_MAX:
        return f"its protocol (reader {reader}, writer {writer}) is newer than this soal knows"
    features = {*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())}
    if unknown := sorted(features - FEATURES):
        return f"it uses {', '.join(unknown)}, under which the log may refer to files in unknown ways"
    return None


def actions_of(key: str, body: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every action of a file, after checking the types of the fields that `soal orphans` reads.

    Raises `UnreadableLogError` if the file is damaged.
    """
    try:
        for kind, action in _parquet(body) if key.endswith(".parquet") else _json(body):
            _check(kind, action)
            yield kind, action
    except BaseException as error:
        # On damaged files arro3 panics; its PanicException is a BaseException, not an Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise UnreadableLogError(f"its {key} cannot be read: {error!r}") from error


def _check(kind: str, action: object) -> None:
    """Raise `ValueError` for a malformed action: a file that it was meant to name would look like an orphan.

    Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#actions
    """
    if not isinstance(action, dict):
        raise ValueError(f"the action {kind} is no object")  # noqa: TRY004 - as for any damage
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
    """Return whether the value is a file name in the folder of sidecars."""
    return isinstance(value, str) and value not in ("", ".", "..") and "/" not in value


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _are_texts(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(entry, str) for entry in value))


def _is_map(value: object) -> bool:
    """Return whether the value is a map, as JSON or Parquet gives it."""
    pairs = value.items() if isinstance(value, dict) else value
    return pairs is None or all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs)  # type: ignore[attr-defined]  # noqa: PLR2004


_FORMS: Final[dict[str, dict[str, Callable[[object], bool]]]] = {
    **{kind: {"path": _is_text} for kind in ("add", "remove", "cdc")},
    "sidecar": {"path": _is_name},
    "metaData": {"partitionColumns": _are_texts, "configuration": _is_map},
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
    from arro3.io import read_parquet  # needed only for Parquet checkpoints

    for batch in read_parquet(body):
        for kind in batch.column_names:
            column = batch[kind]
            rows = _files(column) if kind in ("add", "remove") else column.to_pylist()
            # In a row of another kind this column is null, or all its fields are.
            yield from (
                (kind, row) for row in rows if row is not None and any(value is not None for value in row.values())
            )


def _files(column: Array) -> Iterator[dict[str, Any] | None]:
    from arro3.core import struct_field

    names = [field.name for field in column.type.fields]
    columns = {name: struct_field(column, names.index(name)).to_pylist() for name in _NEEDED if name in names}
    vectors = columns.get("deletionVector", [None] * len(column))
    for path, vector in zip(columns["path"], vectors, strict=True):
        # In a row of another kind the path is null.
        yield {"path": path, "deletionVector": vector if vector and vector["storageType"] else None} if path else None
