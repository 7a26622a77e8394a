"""What takes one commit back: its inverse, action by action, or the reason why there is none.

Files that the commit added are removed, files that it removed are added again, each with the deletion vector it had;
schema and properties that it changed are put back. Everything that others have committed since stays as it is.
Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from safewriter.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from safewriter.state import Checkpoint
    from safewriter.tables.delta.commit import Commit

__all__ = ["UNDOABLE_FEATURES", "Undo", "file_obstacle", "needs_metadata", "undo_obstacle"]

UNDOABLE_FEATURES: Final = frozenset(
    {
        "appendOnly",  # the feature alone does nothing; the property is looked at
        "changeDataFeed",
        "checkConstraints",
        "clustering",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "identityColumns",
        "inCommitTimestamp",
        "invariants",
        "rowTracking",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
"""Table features under which the inverse of a commit was seen to be right, by Spark and by other readers."""

_KEPT: Final = ("partitionValues", "size", "tags", "stats", "deletionVector", "baseRowId", "defaultRowCommitVersion")
_MARKS: Final = frozenset({"delta.identity.highWaterMark"})
"""What may only grow in a column's metadata: a commit that moves nothing else has not changed the schema."""
_COLUMN_IDS: Final = "delta.columnMapping.maxColumnId"


@dataclass(frozen=True, slots=True)
class Undo:
    """The inverse of `ours`. `before` is the metaData action that it replaced, if it changed schema or properties."""

    ours: Commit
    before: dict[str, Any] | None

    def actions(self, now_ms: int) -> list[dict[str, Any]]:
        """Return the actions that come after commitInfo."""
        restored = [] if self.before is None else [{"metaData": self._restored(self.before)}]
        removed = [_removal(add, now_ms) for add in self.ours.adds]
        return [*restored, *removed, *(_return(remove, self.ours) for remove in self.ours.removes)]

    def _restored(self, before: dict[str, Any]) -> dict[str, Any]:
        # A column id that was given out once must not be given to another column.
        ids = (self.ours.metadata or {}).get("configuration", {}).get(_COLUMN_IDS)
        if ids is None or _COLUMN_IDS not in before.get("configuration", {}):
            return before
        return {**before, "configuration": {**before["configuration"], _COLUMN_IDS: ids}}


def undo_obstacle(document: Checkpoint, undo: Undo, later: Iterable[Commit]) -> str | None:
    """Tell from the log alone why our commit must stay, or None; `later` are the commits behind ours."""
    return (
        _table_obstacle(document, undo.ours)
        or _commit_obstacle(undo)
        or next((found for commit in later if (found := _later_obstacle(undo, commit)) is not None), None)
    )


def _table_obstacle(document: Checkpoint, ours: Commit) -> str | None:
    features, properties = set(document.attempt.features), dict(document.attempt.properties)
    if ours.protocol is not None:
        features = set(ours.protocol.get("readerFeatures", ())) | set(ours.protocol.get("writerFeatures", ()))
    if ours.metadata is not None:
        properties = ours.metadata.get("configuration", {})
    if unknown := sorted(features - UNDOABLE_FEATURES):
        return f"the table uses {', '.join(unknown)}, under which an undo without Spark is not known to be safe"
    if properties.get("delta.appendOnly") == "true":
        return "the table is append-only"
    return None


def _commit_obstacle(undo: Undo) -> str | None:
    ours = undo.ours
    if others := sorted(set(ours.domains) - {"delta.rowTracking"}):
        return f"version {ours.version} changed {', '.join(others)}" if ours.version else None
    if any(not add.get("dataChange", True) for add in ours.adds):
        return f"version {ours.version} holds rewritten files"
    if any(not remove.get("extendedFileMetadata") or "size" not in remove for remove in ours.removes):
        return f"version {ours.version} removed files without saying what they held"
    return None


def _later_obstacle(undo: Undo, later: Commit) -> str | None:
    ours = undo.ours
    if later.metadata is not None or later.protocol is not None:
        return f"version {later.version} changed the table's schema or properties since"
    if not ours.paths.isdisjoint(later.paths):  # decoded: another engine may have encoded the same path otherwise
        return f"version {later.version} rewrote files of version {ours.version} since"
    if undo.before is not None and later.adds:
        return f"version {later.version} was written with the schema or properties that version {ours.version} brought"
    return None


def file_obstacle(ours: Commit, exists: Callable[[set[str]], bool]) -> str | None:
    """Tell whether S3 no longer has what an undo would put back; `exists` tells whether all the given keys are there.

    The log does not show it, so two settlers may see it differently: whoever refuses for it takes the slot first.
    """
    gone = ours.removed_keys
    if gone and not exists(gone):
        return f"files that version {ours.version} removed are gone from S3 (VACUUM)"
    return None


def needs_metadata(ours: Commit, before: dict[str, Any]) -> bool:
    """Tell whether our commit changed more of the metadata than marks that may only grow."""
    return ours.metadata is not None and _meaning(ours.metadata) != _meaning(before)


def _meaning(metadata: dict[str, Any]) -> tuple[object, ...]:
    configuration = {key: value for key, value in metadata.get("configuration", {}).items() if key != _COLUMN_IDS}
    schema = parsed(metadata.get("schemaString", "null"), object_hook=_without_marks)
    return metadata.get("id"), metadata.get("partitionColumns"), configuration, schema


def _without_marks(found: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key not in _MARKS}


def _removal(add: dict[str, Any], now_ms: int) -> dict[str, Any]:
    return {
        "remove": {
            "path": add["path"],
            "deletionTimestamp": now_ms,
            "dataChange": True,
            "extendedFileMetadata": True,
            **_kept(add),
        }
    }


def _return(remove: dict[str, Any], ours: Commit) -> dict[str, Any]:
    modified_ms = int(remove.get("deletionTimestamp", ours.info.get("timestamp", 0)))
    return {
        "add": {
            "path": remove["path"],
            "partitionValues": {},
            "modificationTime": modified_ms,
            "dataChange": True,
            **_kept(remove),
        }
    }


def _kept(action: dict[str, Any]) -> dict[str, Any]:
    return {name: action[name] for name in _KEPT if action.get(name) is not None}
