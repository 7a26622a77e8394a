"""Undo one commit of ours, and nobody else's, by a new commit: it removes the files that ours has added.

Only a commit that does nothing but add files is undone. What it takes to bring back removed files, a schema or a
transaction of the script's own is not in the log, or was used since. `RESTORE` is never used: it would also undo the
commits of others since. Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from safewriter.objects.store import StoreError
from safewriter.parsing import parsed
from safewriter.tables.delta.commit import REVERT, Commit, Signature

if TYPE_CHECKING:
    from collections.abc import Iterable

    from safewriter.deadline import Clock
    from safewriter.record.document import Checkpoint
    from safewriter.tables.delta.commit import Added
    from safewriter.tables.delta.history import DeltaHistory

__all__ = ["UNDOABLE_FEATURES", "find_live", "removals", "undo", "undo_obstacle"]

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
"""Table features under which Spark and other readers were seen to read and write a table correctly after an undo."""

_SLOTS_MAX: Final = 10_000
"""As for a fence: the settler's time is the real bound."""
_ROW_IDS: Final = "delta.rowTracking"
"""A domain that only grows: each commit with new rows moves it on."""
_ROW_BY_ROW: Final = frozenset({"DELETE", "UPDATE"})
"""Operations that decide about each row by itself: with no file in common they would have done the same without ours.
A MERGE is not among them: it inserts rows that it has not found. Nor is an insert: its rows may come from the table."""


def find_live(commits: tuple[Commit, ...], write_key: str, epoch: int) -> Commit | None:
    """Return the commit of the write that is in the table and not undone, of this epoch or an earlier one.

    Newer epochs are ignored: otherwise a settler that slept would undo the commit of a later attempt.
    """
    undone = {
        one.reverts
        for one in (commit.signature for commit in commits)
        if one is not None and one.write_key == write_key
    }
    for commit in commits:
        found = commit.epoch_of(write_key)
        ours = commit.signature is None and found is not None and found <= epoch
        if ours and commit.version not in undone:
            return commit
    return None


def undo(
    history: DeltaHistory, document: Checkpoint, commits: tuple[Commit, ...], ours: Commit, clock: Clock
) -> str | None:
    """Undo `ours`; return None when it is undone, or why it cannot be. Others' commits stay.

    `commits` are those since the claim, as last seen. All settlers refuse alike: a reason stands in `ours` or in a
    later commit, and a settler that has not seen that commit loses its slot to it.
    """
    for _ in range(_SLOTS_MAX):
        if find_live(commits, document.write_key, document.epoch) is None:
            return None
        obstacle = undo_obstacle(document, ours, commits)
        if obstacle is not None:
            return obstacle
        signature = Signature(document.write_key, document.epoch, reverts=ours.version)
        info = history.info(REVERT, signature, document.attempt, commits)
        if history.append(commits[-1].version + 1, [info, *removals(ours, clock())]):
            return None
        commits = history.further(commits, document.attempt.version_before)
    raise StoreError(f"{history.store.uri('_delta_log')}: no free slot for an undo in {_SLOTS_MAX} tries")


def undo_obstacle(document: Checkpoint, ours: Commit, since: Iterable[Commit]) -> str | None:
    """Return, from the log alone, why our commit must stay, or None; `since` are all commits since the claim.

    An undo is a transaction that comes after all of them. It is right only if each of them would have been the same
    without our commit.
    """
    commits = tuple(since)
    later = [commit for commit in commits if commit.version > ours.version]
    return (
        _more_than_adds(document, ours)
        or _table_obstacle(document, commits)
        or next((found for commit in later if (found := _later_obstacle(ours, commit)) is not None), None)
    )


def removals(ours: Commit, now_ms: int) -> list[dict[str, Any]]:
    """Return a removal of each file that our commit has added, in the form that Delta itself gives it."""
    return [_removal(added, now_ms) for added in ours.adds]


def _more_than_adds(document: Checkpoint, ours: Commit) -> str | None:
    """Return what our commit has done besides adding files. `CommitBody.undoObstacle` is the gate's side of it."""
    version = f"version {ours.version}"
    creates = ours.version == 0
    if ours.removes:
        return f"{version} removed files"
    if not creates and (ours.metadata is not None or ours.protocol is not None or set(ours.domains) - {_ROW_IDS}):
        return f"{version} changed the table's schema or properties"
    if own := sorted(ours.transactions.keys() - {document.write_key}):
        # It would stay, and Delta would skip the retry's write for it.
        return f"{version} holds the script's own transaction {', '.join(own)}"
    if any(not added.changes_data or not added.is_whole for added in ours.adds):
        return f"{version} holds files that are not new rows"
    return None


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


def _later_obstacle(ours: Commit, later: Commit) -> str | None:
    if later.metadata is not None or later.protocol is not None:
        return f"version {later.version} changed the table's schema or properties since"
    # By their names: another engine may have written the same path otherwise.
    if not {path.rpartition("/")[2] for path in ours.paths}.isdisjoint(later.names):
        return f"version {later.version} rewrote files of version {ours.version} since"
    if _is_indifferent(later) or later.info.get("operation") in _ROW_BY_ROW:
        return None
    return f"version {later.version} may depend on rows of version {ours.version}"


def _is_indifferent(later: Commit) -> bool:
    """Tell whether a commit would have been the same with any rows in the table."""
    return later.signature is not None or not later.changes_data or later.is_blind_append


def _removal(added: Added, now_ms: int) -> dict[str, Any]:
    about = parsed(added.about)
    # Delta names the partition columns of a removed file without those whose value is NULL.
    partition = {name: value for name, value in about.pop("partitionValues").items() if value is not None}
    return {
        "remove": {
            "path": added.path,
            "deletionTimestamp": now_ms,
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": partition,
            **about,
        }
    }
