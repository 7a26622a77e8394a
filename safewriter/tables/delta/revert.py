"""Undo one commit of ours, and nobody else's: a new commit that removes exactly the files that ours added.

`RESTORE` is never used: it puts the whole table back, and whatever others have committed in between with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from safewriter.objects.store import StoreError
from safewriter.tables.delta.commit import REVERT, Commit, Mark

if TYPE_CHECKING:
    from safewriter.deadline import Clock
    from safewriter.state import Checkpoint
    from safewriter.tables.delta.history import DeltaHistory

__all__ = ["UNDOABLE_FEATURES", "find_live", "revert", "undo_obstacle"]

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
        "inCommitTimestamp",
        "invariants",
        "rowTracking",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
"""Table features under which a commit of `remove` actions was seen to be right, by Spark and by other readers."""

_SLOTS_MAX: Final = 100


def find_live(commits: tuple[Commit, ...], write_key: str, epoch: int) -> Commit | None:
    """Return the commit of the write that is in the table and not undone, of this epoch or an earlier one.

    A newer epoch must not be seen: a settler that slept would revert the commit of a later attempt.
    """
    undone = {
        commit.mark.reverts for commit in commits if commit.mark is not None and commit.mark.write_key == write_key
    }
    for commit in commits:
        ours = commit.mark is None and commit.transactions.get(write_key, epoch + 1) <= epoch
        if ours and commit.version not in undone:
            return commit
    return None


def revert(history: DeltaHistory, document: Checkpoint, ours: Commit, clock: Clock) -> str | None:
    """Undo `ours`; return None when it is undone, or why it cannot be. Others' commits stay."""
    for _ in range(_SLOTS_MAX):
        commits = history.since(document.attempt)
        if find_live(commits, document.write_key, document.epoch) is None:
            return None
        obstacle = undo_obstacle(document, ours, commits)
        if obstacle is not None:
            return obstacle
        mark = Mark(document.write_key, document.epoch, reverts=ours.version)
        body = [history.info(REVERT, mark, document.attempt, commits), *(_removal(add, clock()) for add in ours.adds)]
        if history.append(commits[-1].version + 1, body):
            return None
    raise StoreError(f"{history.store.uri('_delta_log')}: no free slot for a revert in {_SLOTS_MAX} tries")


def undo_obstacle(  # noqa: PLR0911 - one return for each obstacle
    document: Checkpoint, ours: Commit, commits: tuple[Commit, ...]
) -> str | None:
    """Tell why our commit must stay, or None if it can be undone."""
    later = [commit for commit in commits if commit.version > ours.version]
    features, properties = _table(document, ours)
    own = ours.paths
    if unknown := sorted(features - UNDOABLE_FEATURES):
        return f"the table uses {', '.join(unknown)}, under which an undo without Spark is not known to be safe"
    if properties.get("delta.appendOnly") == "true":
        return "the table is append-only"
    if ours.removes or ours.cdc or any(domain != "delta.rowTracking" for domain in ours.domains):
        return f"version {ours.version} did more than add files"
    if any(not add.get("dataChange", True) or "deletionVector" in add for add in ours.adds):
        return f"version {ours.version} holds rewritten files"
    for commit in later:
        if commit.metadata is not None or commit.protocol is not None:
            return f"version {commit.version} changed the table's schema or properties since"
        if not own.isdisjoint(commit.paths):  # decoded: another engine may have encoded the same path otherwise
            return f"version {commit.version} rewrote files of version {ours.version} since"
    return None


def _table(document: Checkpoint, ours: Commit) -> tuple[set[str], dict[str, str]]:
    """Return the table's features and properties: as recorded at the claim, or as our own commit created them."""
    features, properties = set(document.attempt.features), dict(document.attempt.properties)
    if ours.protocol is not None:
        features = set(ours.protocol.get("readerFeatures", ())) | set(ours.protocol.get("writerFeatures", ()))
    if ours.metadata is not None:
        properties = ours.metadata.get("configuration", {})
    return features, properties


def _removal(add: dict[str, Any], now_ms: int) -> dict[str, Any]:
    kept = ("partitionValues", "size", "tags", "stats", "baseRowId", "defaultRowCommitVersion")
    return {
        "remove": {
            "path": add["path"],
            "deletionTimestamp": now_ms,
            "dataChange": True,
            "extendedFileMetadata": True,
            **{name: add[name] for name in kept if add.get(name) is not None},
        }
    }
