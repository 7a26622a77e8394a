"""What of a write stands in a table's metadata: staged on its branch, or in its target.

An attempt writes to a branch of its own, which no reader of its target sees: of main, or of the branch that the write
is for. Its snapshots carry the write key and epoch as properties, and the document names the one that is to be
published; either tells that it is in the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyiceberg.table.refs import MAIN_BRANCH

from safewriter.tables.table import Landed, RetentionGapError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

    from safewriter.state import AttemptRecord, Checkpoint

__all__ = [
    "EPOCH",
    "SOURCE",
    "WRITE",
    "Staged",
    "ancestors",
    "branch_of",
    "check_history",
    "head_of",
    "is_first",
    "is_marked",
    "is_ours",
    "landed",
    "published",
    "source_of",
]

WRITE: Final = "safewriter-write"
EPOCH: Final = "safewriter-epoch"
SOURCE: Final = "source-snapshot-id"
"""Of an append that was applied again, as of any cherry-pick: the staged snapshot that it repeats. Before 1.10,
Iceberg's expireSnapshots deletes the data files of a snapshot outside of main, which the staged one is now, unless one
in main names it so: https://github.com/apache/iceberg/pull/13614
"""


def branch_of(attempt: AttemptRecord) -> str:
    """Return the name of the branch that an attempt stages on."""
    return attempt.prefix.rstrip("-")


def head_of(metadata: TableMetadata, branch: str) -> int | None:
    """Return the snapshot that a branch shows, None if there is no such branch (main of an empty table)."""
    ref = metadata.refs.get(branch)
    return None if ref is None else ref.snapshot_id


def ancestors(metadata: TableMetadata, snapshot_id: int | None) -> Iterator[Snapshot]:
    """Go from a snapshot to its oldest ancestor that is still there."""
    known = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    for _ in range(len(known)):
        snapshot = None if snapshot_id is None else known.get(snapshot_id)
        if snapshot is None:
            return
        yield snapshot
        snapshot_id = snapshot.parent_snapshot_id


def check_history(metadata: TableMetadata, base: int, target: str) -> None:
    """Raise `RetentionGapError` unless the target is known down to `base` (0 or less: to its first snapshot), or lies
    below.

    Where its older snapshots were expired, one of the write may have been among them, and it still shows their rows.
    (pyiceberg says of a snapshot whose parent it has expired that it has none.)
    """
    line = list(ancestors(metadata, head_of(metadata, target)))
    if not line and target != MAIN_BRANCH:
        raise RetentionGapError(f"the branch {target} is gone, and with it what it showed")
    if not line or _begins_at(line[-1], base) or any(one.snapshot_id == base for one in line):
        return
    began = metadata.snapshot_by_id(base)
    if began is None or _order(line[-1]) >= _order(began):
        raise RetentionGapError(
            f"snapshots of {target} were expired after {base}, on which the write began, and with them, perhaps, its"
            " own"
        )


def _begins_at(snapshot: Snapshot, base: int) -> bool:
    """Tell whether a snapshot is the first one after `base`; for 0 or less, the first one of all."""
    return snapshot.parent_snapshot_id == base if base > 0 else is_first(snapshot)


def is_first(snapshot: Snapshot) -> bool:
    """Tell whether there was nothing before a snapshot; not, if what was before it was expired."""
    said = snapshot.summary
    total, added = (int((said and said.get(f"{what}-data-files")) or 0) for what in ("total", "added"))
    return snapshot.parent_snapshot_id is None and total == added


def _order(snapshot: Snapshot) -> tuple[int, int]:
    return snapshot.sequence_number or 0, snapshot.timestamp_ms  # format version 1 has no sequence


def published(metadata: TableMetadata, document: Checkpoint, target: str) -> Snapshot | None:
    """Return the snapshot by which the write is in its target: of the document's epoch or an earlier one.

    A newer epoch must not be seen: a settler that slept would take the publishing of a later attempt for this one's.
    """
    # A branch that is gone may have become another one's history.
    gone = target != MAIN_BRANCH and target not in metadata.refs
    heads = [name for name in metadata.refs if not name.startswith("sw-")] if gone else [target]
    ours = {snapshot.snapshot_id for snapshot in metadata.snapshots if is_ours(snapshot, document)}
    line = (snapshot for head in heads for snapshot in ancestors(metadata, head_of(metadata, head)))
    # Somebody may have cherry-picked what is staged, by hand.
    return next((snapshot for snapshot in line if ours & {snapshot.snapshot_id, source_of(snapshot)}), None)


def source_of(snapshot: Snapshot) -> int | None:
    """Return the staged snapshot that one repeats."""
    source = None if snapshot.summary is None else snapshot.summary.get(SOURCE)
    return int(str(source)) if source else None


def is_ours(snapshot: Snapshot, document: Checkpoint) -> bool:
    """Tell whether a snapshot bears the mark of the write, or was picked to be published."""
    picked = any(snapshot.snapshot_id == attempt.commit_version for attempt in document.attempts)
    return picked or is_marked(snapshot, document.write_key, document.epoch)


def is_marked(snapshot: Snapshot, write_key: str, epoch: int) -> bool:
    """Tell whether a snapshot says that it is of this write, of this epoch or an earlier one."""
    said = snapshot.summary
    return said is not None and said.get(WRITE) == write_key and int(said.get(EPOCH) or 0) <= epoch


def landed(snapshot: Snapshot, steps: tuple[Snapshot, ...] = ()) -> Landed:
    """Return what the checkpoint remembers of a snapshot; `steps` are all that it brings in, if there are several."""
    added = [step.summary for step in steps or (snapshot,) if step.summary is not None]
    rows = sum(int(summary.get("added-records") or 0) for summary in added)
    size = sum(int(summary.get("added-files-size") or 0) for summary in added)
    return Landed(snapshot.snapshot_id, rows, size)


class Staged:
    """What an attempt has staged: the snapshots from its branch's head (or the picked one) down to where it began.

    `base` is the snapshot that the target showed then, 0 if the table was empty. It may have been set back below since.
    """

    def __init__(self, metadata: TableMetadata, snapshot_id: int, base: int, target: str) -> None:
        self.metadata = metadata
        self.snapshot_id = snapshot_id
        self.target_head = head_of(metadata, target)
        line = {snapshot.snapshot_id for snapshot in ancestors(metadata, self.target_head)}
        steps: list[Snapshot] = []
        for snapshot in ancestors(metadata, snapshot_id):
            if snapshot.snapshot_id in line or snapshot.snapshot_id == base:
                break
            steps.append(snapshot)
        self.steps = tuple(steps)
        """Newest first; empty if the snapshot is in the target, or not there at all."""
        self._whole = bool(steps) and (steps[-1].parent_snapshot_id in line or _begins_at(steps[-1], base))

    @property
    def is_fast_forward(self) -> bool:
        """Whether the target can simply be set to it: everything of the target is below it."""
        return bool(self.steps) and self.steps[-1].parent_snapshot_id == self.target_head

    @property
    def is_append(self) -> bool:
        """Whether it adds data files and takes nothing away, so that it can be applied on top of anything.

        Not if one of its snapshots was expired: what that one has added would be left out.
        """
        return self._whole and all(
            step.summary is not None
            and step.summary.operation.value == "append"
            and int(step.summary.get("added-delete-files") or 0) == 0
            for step in self.steps
        )
