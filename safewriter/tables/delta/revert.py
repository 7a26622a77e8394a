"""Undo one commit of ours, and nobody else's, by a new commit that is the inverse of ours.

`RESTORE` is never used: it would also undo the commits of others since.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from safewriter.objects.store import StoreError
from safewriter.parsing import parsed
from safewriter.tables.delta.commit import REVERT, Commit, Signature
from safewriter.tables.delta.fence import empty_commit
from safewriter.tables.delta.inverse import Inverse, file_obstacle, needs_metadata, undo_obstacle

if TYPE_CHECKING:
    from safewriter.deadline import Clock
    from safewriter.record.checkpoints import Checkpoints
    from safewriter.record.document import Checkpoint
    from safewriter.tables.delta.history import DeltaHistory

__all__ = ["find_live", "revert"]

_SLOTS_MAX: Final = 10_000
"""As for a fence: the settler's time is the real bound."""


def find_live(commits: tuple[Commit, ...], write_key: str, epoch: int) -> Commit | None:
    """Return the commit of the write that is in the table and not undone, of this epoch or an earlier one.

    Newer epochs are ignored: otherwise a settler that slept would revert the commit of a later attempt.
    """
    undone = {
        one.reverts
        for one in (commit.signature for commit in commits)
        if one is not None and one.write_key == write_key
    }
    for commit in commits:
        ours = commit.signature is None and commit.transactions.get(write_key, epoch + 1) <= epoch
        if ours and commit.version not in undone:
            return commit
    return None


def revert(
    history: DeltaHistory,
    document: Checkpoint,
    commits: tuple[Commit, ...],
    ours: Commit,
    checkpoints: Checkpoints,
    clock: Clock,
) -> str | None:
    """Undo `ours`; return None when it is undone, or why it cannot be. Others' commits stay.

    `commits` are those since the claim, as last seen.

    If the log does not show the reason of a refusal, an empty commit takes the slot first: the revert of a settler that
    does not know the reason may still be on its way there, and would land after the verdict.
    """
    before = _before(commits, document, ours, checkpoints)
    unknown = (
        f"version {ours.version} changed the table's schema or properties, and what they were is not on record"
        if before is None and ours.metadata is not None
        else None
    )
    undo = Inverse(ours, before if before is not None and needs_metadata(ours, before) else None)
    for _ in range(_SLOTS_MAX):
        if find_live(commits, document.write_key, document.epoch) is None:
            return None
        obstacle = undo_obstacle(document, undo, commits)
        if obstacle is not None:
            return obstacle
        unseen = unknown or file_obstacle(ours, history.has_all)
        body = (
            _inverse(history, document, undo, commits, clock)
            if unseen is None
            else empty_commit(history, document, commits, clock)
        )
        if history.append(commits[-1].version + 1, body):
            return unseen
        commits = history.further(commits, document.attempt.version_before)
    raise StoreError(f"{history.store.uri('_delta_log')}: no free slot for a revert in {_SLOTS_MAX} tries")


def _inverse(
    history: DeltaHistory, document: Checkpoint, undo: Inverse, commits: tuple[Commit, ...], clock: Clock
) -> list[dict[str, Any]]:
    signature = Signature(document.write_key, document.epoch, reverts=undo.ours.version)
    actions = undo.actions(clock())
    return [history.info(REVERT, signature, document.attempt, commits, actions), *actions]


def _before(
    commits: tuple[Commit, ...], document: Checkpoint, ours: Commit, checkpoints: Checkpoints
) -> dict[str, Any] | None:
    """Return the metaData action that ours replaced: from the log since the claim, or from the gate's note.

    The note of a creation holds the metaData of the creating commit itself.
    """
    if ours.metadata is None:
        return None
    for commit in reversed(commits):
        if commit.version < ours.version and commit.metadata is not None:
            return commit.metadata
    note = checkpoints.note(document.write_key, ours.transactions[document.write_key])
    found = (parsed(line).get("metaData") for line in (note or b"").splitlines())
    return next((metadata for metadata in found if metadata is not None), None)
