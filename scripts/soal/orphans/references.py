"""Which files of a table an action of its log refers to.

Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import base64
import re
import uuid
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from safewriter.objects import Location

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
"""Table features that bring no other way for a log to refer to a file than those that are read here."""
_READER_MAX: Final = 3
_WRITER_MAX: Final = 7

# The alphabet of ZeroMQ's base85, in which Delta writes UUIDs, and that of Python's: https://rfc.zeromq.org/spec/32/
_Z85: Final = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85: Final = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85: Final = bytes.maketrans(_Z85, _B85)
_UUID_LENGTH: Final = 20

_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/.*|/.*", re.DOTALL)


class UnreadableLogError(Exception):
    """The log says something that is not understood here, so nothing can be called an orphan."""


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
    """Return a path as it is and percent-decoded: not every engine encodes it, and a key too many harms nobody."""
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
    """Return where a deletion vector lies: nowhere (inline), beside the data files under a UUID, or at a path."""
    storage, where = vector.get("storageType"), str(vector.get("pathOrInlineDv"))
    if storage == "i":
        return set()
    if storage == "p":
        return _path_keys(where, table)
    if storage != "u" or len(where) < _UUID_LENGTH:
        raise UnreadableLogError(f"it holds a deletion vector that is stored in an unknown way: {dict(vector)}")
    folder, encoded = where[:-_UUID_LENGTH], where[-_UUID_LENGTH:]
    try:
        name = uuid.UUID(bytes=base64.b85decode(encoded.encode("ascii").translate(_TO_B85)))
    except ValueError as error:
        raise UnreadableLogError(f"it holds a deletion vector without a UUID: {where!r}") from error
    return {f"{folder}/deletion_vector_{name}.bin" if folder else f"deletion_vector_{name}.bin"}


def protocol_obstacle(protocol: Mapping[str, Any]) -> str | None:
    """Tell why a table of this protocol cannot be judged here, or None."""
    reader, writer = int(protocol.get("minReaderVersion") or 1), int(protocol.get("minWriterVersion") or 1)
    if reader > _READER_MAX or writer > _WRITER_MAX:
        return f"its protocol (reader {reader}, writer {writer}) is newer than what is known here"
    named = {*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())}
    if unknown := sorted(named - FEATURES):
        return f"it uses {', '.join(unknown)}, under which files may be referred to in ways that are not known here"
    return None
