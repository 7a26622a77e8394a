"""The inverse of one commit, action by action, or the reason why there is none.

Files that the commit added are removed, files that it removed are added again, each with the deletion vector it had;
schema and properties that it changed are restored. Everything that others have committed since stays as it is.
Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from safewriter.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from safewriter.record.document import Checkpoint
    from safewriter.tables.delta.commit import Commit

__all__ = ["UNDOABLE_FEATURES", "Inverse", "file_obstacle", "needs_metadata", "undo_obstacle"]

UNDOABLE_FEATURES: Final = frozenset(
    {
        "appendOnly",  # the feature alone does nothing; the code below checks the property
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
"""Table features under which Spark and other readers were seen to read a table correctly after an inverse."""

_KEPT: Final = ("partitionValues", "size", "tags", "stats", "deletionVector", "baseRowId", "defaultRowCommitVersion")
_MARKS: Final = frozenset({"delta.identity.highWaterMark"})
"""Entries of a column's metadata that only grow: a commit that changes nothing else has not changed the schema."""
_ROW_BY_ROW: Final = frozenset({"DELETE", "UPDATE"})
"""Operations that decide about each row by itself: with no file in common they would have done the same without ours.
A MERGE is none: it inserts rows that it has not found. Nor is a write: its rows may come from the table."""
_COLUMN_IDS: Final = "delta.columnMapping.maxColumnId"


@dataclass(frozen=True, slots=True)
class Inverse:
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


def undo_obstacle(document: Checkpoint, undo: Inverse, since: Iterable[Commit]) -> str | None:
    """Return, from the log alone, why our commit must stay, or None; `since` are all commits since the claim.

    An undo is a transaction that comes after all of them. It is right only if each of them would have been the same
    without our commit, and fits the rows that the undo restores.
    """
    commits = tuple(since)
    later = [commit for commit in commits if commit.version > undo.ours.version]
    return (
        _table_obstacle(document, commits)
        or _commit_obstacle(undo)
        or next((found for commit in later if (found := _later_obstacle(undo, commit)) is not None), None)
    )


def _table_obstacle(document: Checkpoint, commits: Iterable[Commit]) -> str | None:
    features, properties = set(document.attempt.features), dict(document.attempt.properties)
    for commit in commits:
        if commit.protocol is not None:
            features = {*commit.protocol.get("readerFeatures", ()), *commit.protocol.get("writerFeatures", ())}
        if commit.metadata is not None:
            properties = commit.metadata.get("configuration", {})
    if unknown := sorted(features - UNDOABLE_FEATURES):
        return f"the table uses {', '.join(unknown)}, under which an undo without Spark is not known to be safe"
    if properties.get("delta.appendOnly") == "true":
        return "the table is append-only"
    return None


def _commit_obstacle(undo: Inverse) -> str | None:
    ours = undo.ours
    if others := sorted(set(ours.domains) - {"delta.rowTracking"}):
        return f"version {ours.version} changed {', '.join(others)}" if ours.version else None
    if any(not add.get("dataChange", True) for add in ours.adds):
        return f"version {ours.version} holds rewritten files"
    if any(not remove.get("extendedFileMetadata") or "size" not in remove for remove in ours.removes):
        return f"version {ours.version} removed files without saying what they held"
    return None


def _later_obstacle(undo: Inverse, later: Commit) -> str | None:
    ours = undo.ours
    if later.metadata is not None or later.protocol is not None:
        return f"version {later.version} changed the table's schema or properties since"
    if not ours.paths.isdisjoint(later.paths):  # decoded: another engine may have encoded the same path otherwise
        return f"version {later.version} rewrote files of version {ours.version} since"
    if undo.before is not None and later.adds:
        return f"version {later.version} was written with the schema or properties of version {ours.version}"
    return None if _is_indifferent(later) else _dependence(ours, later)


def _dependence(ours: Commit, later: Commit) -> str | None:
    """Return how a commit that has read rows may depend on ours, or how restored rows may contradict it."""
    if ours.removes:
        return f"version {later.version} changed rows without seeing those that version {ours.version} had removed"
    if later.info.get("operation") not in _ROW_BY_ROW:
        return f"version {later.version} may depend on rows of version {ours.version}"
    return None


def _is_indifferent(later: Commit) -> bool:
    """Tell whether a commit would have been the same with any rows in the table."""
    return later.signature is not None or not later.changes_data or later.is_blind_append


def file_obstacle(ours: Commit, exists: Callable[[set[str]], bool]) -> str | None:
    """Return why S3 no longer has the files that an undo would restore, or None; `exists` tells whether all keys exist.

    The log does not show it, so two settlers may disagree: one that refuses for this reason takes the slot first.
    """
    try:
        gone = ours.removed_keys
    except ValueError as error:
        return f"version {ours.version} removed {error}"
    if gone and not exists(gone):
        return f"files that version {ours.version} removed are gone from S3 (VACUUM)"
    return None


def needs_metadata(ours: Commit, before: dict[str, Any]) -> bool:
    """Tell whether our commit changed more of the metadata than entries that only grow."""
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
