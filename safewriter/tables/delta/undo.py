"""Undo one commit of ours, and no other, by a new commit: it removes the files that ours has added.

Only a commit that does nothing but add files is undone. Removed files, a schema or a script's own transaction cannot be
restored: the log lacks what that takes, or a later commit has used it. `RESTORE` is never used: it would also undo the
commits of others since. Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#add-file-and-remove-file
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from safewriter.bounds import short
from safewriter.errors import UnknownOutcomeError
from safewriter.identity import is_file_of
from safewriter.objects.store import StoreError
from safewriter.parsing import parsed
from safewriter.tables.delta.commit import RESTORE, REVERT, Commit, Signature, is_on
from safewriter.tables.delta.description import described

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from safewriter.deadline import Clock
    from safewriter.record.document import Checkpoint
    from safewriter.tables.delta.commit import Added
    from safewriter.tables.delta.history import DeltaHistory

__all__ = ["UNDOABLE_FEATURES", "find_again", "find_live", "removals", "table_obstacle", "undo", "undo_obstacle"]

UNDOABLE_FEATURES: Final = frozenset(
    {
        "appendOnly",  # the feature alone does nothing; `_FLAGS` has the property
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

_FLAGS: Final = {
    "delta.appendOnly": "is append-only",
    "delta.compatibility.symlinkFormatManifest.enabled": (
        "has manifests for other engines (delta.compatibility.symlinkFormatManifest.enabled), which only Spark rewrites"
    ),
}
"""Properties that allow no undo while they are true."""
_OTHER_FORMATS: Final = "delta.universalFormat.enabledFormats"
"""Formats whose metadata Spark writes behind each commit. Hudi's has no table feature."""
_SLOTS_MAX: Final = 10_000
"""As for a fence: the settler's time is the real bound."""
_ROW_IDS: Final = "delta.rowTracking"
"""A domain that only grows: each commit with new rows moves it on."""
_ROW_BY_ROW: Final = "DELETE"
"""The operation that decides about each row by itself: with no file in common it would have done the same without ours.
A MERGE inserts rows that it has not found, and the rows of an insert or the values of an UPDATE may come from a
subquery on the table, of which the log does not tell."""
_SUBQUERY: Final = re.compile(r"select\b|subquery|listquery|exists\b", re.IGNORECASE)
"""The words of a subquery in the condition of a DELETE as engines log it. Delta's own Spark allows none there."""
_LOOKS_AT_NONE: Final = frozenset({"OPTIMIZE", "REORG", "VACUUM START", "VACUUM END"})
"""The operations that do the same with any rows in the table, also if they do nothing. A MERGE, UPDATE or insert that
changes nothing may have found its rows in ours."""


def find_live(commits: tuple[Commit, ...], write_key: str, epoch: int) -> Commit | None:
    """Return the commit of the write that is in the table and not undone, of this epoch or an earlier one.

    Newer epochs are ignored: otherwise a settler that slept would undo the commit of a later attempt.
    """
    undone = {
        signature.reverts
        for signature in (commit.signature for commit in commits)
        if signature is not None and signature.write_key == write_key
    }
    for commit in commits:
        commit_epoch = commit.epoch_of(write_key)
        is_ours = commit.signature is None and commit_epoch is not None and commit_epoch <= epoch
        if is_ours and commit.version not in undone:
            return commit
    return None


def find_again(commits: tuple[Commit, ...], write_key: str, table: str) -> Commit | None:
    """Return the version of somebody else that has brought an undone write back, as `RESTORE` to before the undo does;
    None if there is none, or if a later version has taken all of it out again.

    Raises `UnknownOutcomeError` if the table holds files of the write, and the log does not show that these are one
    undone commit as a whole: only a person can decide.
    """
    undone: list[set[str]] = []
    back: set[str] = set()
    brings: Commit | None = None
    example = ""
    moved = unsure = False
    for commit in commits:
        removed = {_name(path) for path in commit.removes}
        if (signature := commit.signature) is not None:
            if signature.write_key == write_key and signature.reverts is not None:
                undone.append(removed)
        elif commit.epoch_of(write_key) is None:
            added = {name for one in commit.adds if is_file_of(name := _name(unquote(one.path)), write_key)}
            is_restore = commit.info.get("operation") == RESTORE
            if is_restore or not (commit.adds or commit.adds_others):
                back -= removed
                unsure |= is_restore and moved
            else:
                moved |= not back.isdisjoint(removed - added)  # the rows may be in other files now
            back |= added
            if added:
                brings, example = commit, min(added)
    if brings is None or not (back or unsure):
        return None
    if unsure or back not in undone:
        raise UnknownOutcomeError(
            f"version {brings.version} of {table} has brought files of this write back (one is {example}), of which"
            f" {len(back)} are there now, and the log does not show that all of its rows are there, or that none is."
            f" Look for rows whose file (_metadata.file_name) is named {write_key}-..., or was made of such a file:"
            " delete them, or leave them, and use a new clientToken for what is missing"
        )
    return brings


def undo(
    history: DeltaHistory, document: Checkpoint, commits: tuple[Commit, ...], commit: Commit, clock: Clock
) -> str | None:
    """Undo `commit`; return None when it is undone, or why it cannot be. Others' commits stay.

    `commits` are those since the claim, as last seen; the caller has found no `undo_obstacle` in them. All settlers
    refuse alike: the reason lies in `commit` or in a later commit, and a settler that has not seen that commit loses
    its slot to it. A lost slot has the table described no second time: a commit that changes the table is an obstacle.
    """
    for _ in range(_SLOTS_MAX):
        if find_live(commits, document.write_key, document.epoch) is None:
            return None
        if (obstacle := _obstacle_since(commit, commits)) is not None:
            return obstacle
        signature = Signature(document.write_key, document.epoch, reverts=commit.version)
        info = history.info(REVERT, signature, document.attempt, commits)
        if history.append(commits[-1].version + 1, [info, *removals(commit, clock())]):
            return None
        commits = history.further(commits, document.attempt.version_before)
    raise StoreError(f"{history.store.uri('_delta_log')}: no free slot for an undo in {_SLOTS_MAX} tries")


def undo_obstacle(
    history: DeltaHistory, document: Checkpoint, commit: Commit, commits: tuple[Commit, ...]
) -> str | None:
    """Return, from the log alone, why our commit must stay, or None; `commits` are all since the claim.

    An undo is a transaction that comes after all of them. It is right only if each of them would have been the same
    without our commit.
    """
    return (
        _more_than_adds(document, commit)
        or _table_obstacle(history, document, commits)
        or _obstacle_since(commit, commits)
    )


def table_obstacle(features: Iterable[str], properties: Mapping[str, str]) -> str | None:
    """Return what a table has or does that allows no undo; None if its commits can be undone.

    An undo runs without Spark, and so without the work that Delta does behind each of Spark's commits. Readers of what
    that work writes would still find the undone rows.
    """
    if flag := next((name for name in _FLAGS if is_on(properties, name)), None):
        return _FLAGS[flag]
    if formats := properties.get(_OTHER_FORMATS):
        return f"is also a table of {short(formats)} ({_OTHER_FORMATS}), whose metadata only Spark writes"
    if unknown := sorted(set(features) - UNDOABLE_FEATURES):
        return f"uses {', '.join(unknown)}, under which an undo without Spark is not known to be safe"
    return None


def removals(commit: Commit, now_ms: int) -> list[dict[str, Any]]:
    """Return a removal of each file that our commit has added, in the form that Delta itself gives it."""
    return [_removal(added, now_ms) for added in commit.adds]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _more_than_adds(document: Checkpoint, commit: Commit) -> str | None:
    """Return what our commit has done besides adding files. `CommitBody.undoObstacle` is the gate's side of it."""
    version = f"version {commit.version}"
    creates = commit.version == 0
    if commit.removes:
        return f"{version} removed files"
    if not creates and (commit.metadata is not None or commit.protocol is not None or set(commit.domains) - {_ROW_IDS}):
        return f"{version} changed the table's schema or properties"
    if transactions := sorted(commit.transactions.keys() - {document.write_key}):
        # It would stay, and Delta would skip the retry's write for it.
        return f"{version} holds the script's own transaction {', '.join(transactions)}"
    if any(not added.changes_data or not added.is_whole for added in commit.adds):
        return f"{version} holds files that are not new rows"
    own = tuple(attempt.prefix for attempt in document.attempts)
    names = (_name(unquote(added.path)) for added in commit.adds)
    if any(is_file_of(name, document.write_key) and not name.startswith(own) for name in names):
        # Its document was deleted, and this one made anew: a caller may have been told that the rows are there.
        return f"{version} is of an attempt that this document does not name"
    return None


def _table_obstacle(history: DeltaHistory, document: Checkpoint, commits: tuple[Commit, ...]) -> str | None:
    table = described(history, document.attempt, commits)
    obstacle = table_obstacle(table.features, table.properties)
    return None if obstacle is None else f"the table {obstacle}"


def _obstacle_since(commit: Commit, commits: Iterable[Commit]) -> str | None:
    later = (other for other in commits if other.version > commit.version)
    return next((obstacle for other in later if (obstacle := _later_obstacle(commit, other)) is not None), None)


def _later_obstacle(commit: Commit, later: Commit) -> str | None:
    if later.metadata is not None or later.protocol is not None:
        return f"version {later.version} changed the table's schema or properties since"
    # By their names: another engine may have written the same path otherwise.
    if not {_name(path) for path in commit.paths}.isdisjoint(later.names):
        return f"version {later.version} rewrote files of version {commit.version} since"
    if _is_indifferent(later):
        return None
    return f"version {later.version} may depend on rows of version {commit.version}"


def _is_indifferent(later: Commit) -> bool:
    """Return whether a commit would have been the same without our rows."""
    operation = later.info.get("operation")
    if operation == _ROW_BY_ROW:
        return _SUBQUERY.search(str(later.info.get("operationParameters"))) is None
    moves_only = bool(later.paths) and not later.changes_data
    return later.signature is not None or moves_only or later.is_blind_append or operation in _LOOKS_AT_NONE


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
