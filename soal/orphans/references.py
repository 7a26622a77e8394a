"""The files of a table that an action of its log refers to.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from safewriter.objects import Location
from safewriter.tables.delta.vectors import relative_key

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["UnreadableLogError", "file_keys", "is_known", "protocol_obstacle"]

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


class UnreadableLogError(Exception):
    """The log holds something that this module does not know, so no file can be called an orphan."""


def is_known(kind: str) -> bool:
    """Tell whether an action of this kind is understood."""
    return kind in _FILES or kind in _OTHERS


def file_keys(kind: str, action: Mapping[str, Any], table: Location) -> set[str]:
    """Return the keys, relative to the table, of all files that an action refers to; more than one spelling of each.

    Raises `UnreadableLogError` if it refers to a file that is not the table's own.
    """
    if kind not in _FILES:
        return set()
    vector = action.get("deletionVector") or {}
    return _path_keys(str(action["path"]), table) | (_vector_keys(vector, table) if vector else set())


def _path_keys(path: str, table: Location) -> set[str]:
    """Return a path as it is and percent-decoded: not every engine encodes it, and an extra key does no harm."""
    if not _ABSOLUTE.fullmatch(path):
        return {path, unquote(path)}
    try:
        found = Location.parse(path)
    except ValueError as error:
        raise UnreadableLogError(f"it refers to {path!r}, which is not in the table's bucket") from error
    start = f"{table.key}/"
    keys = {key.removeprefix(start) for key in (found.key, unquote(found.key)) if key.startswith(start)}
    if found.bucket != table.bucket or not keys:
        raise UnreadableLogError(
            f"it refers to {path!r}, which is not in the table's folder: it is a shallow clone of another table"
        )
    return keys


def _vector_keys(vector: Mapping[str, Any], table: Location) -> set[str]:
    """Return the key of a deletion vector: none (inline), beside the data files under a UUID, or at a path."""
    if vector.get("storageType") == "p":
        return _path_keys(str(vector.get("pathOrInlineDv")), table)
    try:
        key = relative_key(vector)
    except ValueError as error:
        raise UnreadableLogError(f"it holds {error}") from error
    return set() if key is None else {key}


def protocol_obstacle(protocol: Mapping[str, Any]) -> str | None:
    """Return why a table of this protocol cannot be judged here, or None."""
    reader, writer = int(protocol.get("minReaderVersion") or 1), int(protocol.get("minWriterVersion") or 1)
    if reader > _READER_MAX or writer > _WRITER_MAX:
        return f"its protocol (reader {reader}, writer {writer}) is newer than this soal knows"
    named = {*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())}
    if unknown := sorted(named - FEATURES):
        return f"it uses {', '.join(unknown)}, under which the log may refer to files in unknown ways"
    return None
