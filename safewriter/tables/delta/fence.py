"""Make sure that no commit of a dead attempt can land any more.

An empty commit with the write's transaction action takes the next slot: a commit that is still on its way finds its
slot taken, and its gate refuses a later slot behind a transaction of its own write. The fence carries the dead epoch,
so that the retry, one epoch higher, passes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from safewriter.objects.store import StoreError
from safewriter.parsing import parsed
from safewriter.tables.delta.commit import FENCE, Signature
from safewriter.tables.delta.description import described
from safewriter.tables.delta.undo import UNDOABLE_FEATURES
from safewriter.tables.table import UndecidableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from safewriter.deadline import Clock
    from safewriter.record.checkpoints import Checkpoints
    from safewriter.record.document import Checkpoint
    from safewriter.tables.delta.commit import Commit
    from safewriter.tables.delta.history import DeltaHistory

__all__ = ["NAMED_IN", "fence"]

NAMED_IN: Final = 100
"""A claim takes an epoch above all that so many last versions name (`LastVersions.java`). So a transaction among them
came behind the claim, where the attempt's gate finds it; an older one may stand before it, whatever a document says."""
_FEATURES: Final = UNDOABLE_FEATURES | {
    "allowColumnDefaults",
    "checkpointProtection",
    "icebergCompatV1",
    "icebergCompatV2",
    "icebergCompatV3",
    "icebergWriterCompatV1",
    "icebergWriterCompatV3",
    "materializePartitionColumns",
    "typeWidening",
    "typeWidening-preview",
    "variantShredding",
    "variantShredding-preview",
    "variantType",
    "variantType-preview",
}
"""Table features that ask nothing of a commit without rows. Of a table with another one, as one whose commits a catalog
takes, a settler cannot tell what a commit of its own would do."""
_WRITER_MAX: Final = 7
_SLOTS_MAX: Final = 10_000
"""On a busy table the settler loses many slots, each to another writer's commit; its time is the real bound."""


def fence(
    history: DeltaHistory,
    document: Checkpoint,
    checkpoints: Checkpoints,
    clock: Clock,
    commits: tuple[Commit, ...] | None = None,
) -> tuple[Commit, ...]:
    """Return the commits since the claim once none of the document's epoch or an earlier one can be added any more.

    `commits` are those since the claim, if the caller has read them. Raises `StoreError` if S3 prevents it, and
    `UndecidableError` if the table's protocol may not allow it.
    """
    before = document.attempt.version_before
    commits = history.since(document.attempt) if commits is None else commits
    looked_at: int | None = None
    for _ in range(_SLOTS_MAX):
        if any(commit.settles(document.write_key, document.epoch) for commit in commits[-NAMED_IN:]):
            return commits
        head = commits[-1].version if commits else before
        creation: list[dict[str, Any]] = []
        if head < 0:
            note = checkpoints.close_creation(document.write_key, document.epoch)
            if note is None:
                return commits
            creation = _creation(note)
        elif looked_at is None or any(commit.protocol is not None for commit in commits[looked_at:]):
            _check_protocol(history, document, commits)
            looked_at = len(commits)
        if history.append(head + 1, _empty_commit(history, document, commits, clock, creation)):
            return commits  # the slot after the last of them is ours, so there are no others
        commits = history.further(commits, before)
    raise StoreError(f"{history.store.uri('_delta_log')}: no free slot for a fence in {_SLOTS_MAX} tries")


def _check_protocol(history: DeltaHistory, document: Checkpoint, commits: tuple[Commit, ...]) -> None:
    table = described(history, document.attempt, commits)
    unknown = sorted(table.features - _FEATURES)
    if unknown or table.writer_version > _WRITER_MAX:
        raise UndecidableError(
            f"{document.table} uses {', '.join(unknown) or f'version {table.writer_version} of the protocol'}, under"
            " which no settler fences"
        )


def _empty_commit(
    history: DeltaHistory,
    document: Checkpoint,
    commits: tuple[Commit, ...],
    clock: Clock,
    creation: Sequence[dict[str, Any]] = (),
) -> list[dict[str, Any]]:
    """Return the actions of a commit that changes nothing (or creates an empty table), and takes a slot."""
    return [
        history.info(FENCE, Signature(document.write_key, document.epoch), document.attempt, commits, list(creation)),
        {"txn": {"appId": document.write_key, "version": document.epoch, "lastUpdated": clock()}},
        *creation,
    ]


def _creation(note: bytes) -> list[dict[str, Any]]:
    """Return the protocol and metaData actions from the note that a creating commit left before it was sent."""
    if b'"metaData"' not in note:
        raise UndecidableError("the table that this attempt has appended to is gone")
    return [action for line in note.splitlines() if "note" not in (action := parsed(line))]
