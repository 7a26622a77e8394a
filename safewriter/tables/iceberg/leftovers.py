"""What ended attempts have staged and nobody has published: taken out of the table, then deleted from S3.

A file is ours exactly if a snapshot of the attempt brought it in, and no branch, tag or other snapshot leads to that
one. What never came to be in a snapshot is `unstaged.py`'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table.snapshots import Operation

from safewriter.objects.store import StoreError
from safewriter.tables.iceberg.publishing import drop_branch, forget
from safewriter.tables.iceberg.staging import SOURCE, Staged, ancestors, head_of
from safewriter.tables.iceberg.unstaged import remove_unstaged

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

    from safewriter.tables.iceberg.catalog import OneTable
    from safewriter.tables.iceberg.left import Left

__all__ = ["remove_left"]

_TRIES_MAX: Final = 20


def remove_left(one: OneTable, left: Left, may_go_on: Callable[[], bool]) -> int:
    """Drop the branch, and delete what only it led to; return how many files went.

    Raises `StoreError` if the work could not be finished, also when `may_go_on` says no.
    """

    def check() -> None:
        if not may_go_on():
            raise StoreError(f"{one.name}: out of time while cleaning up")

    removed = 0
    table = one.load(left.table_id)
    # If it has been expired, what it brought in cannot be told from what it did not.
    picked = left.picked is None or table.metadata.snapshot_by_id(left.picked) is not None
    for _ in range(_TRIES_MAX):
        check()
        head = head_of(table.metadata, left.branch)
        branches = left.branches(table.metadata)
        if branches:
            dropped = drop_branch(one, table, branches[0], left.base)
            table = one.load(left.table_id)
            if not dropped or branches[1:]:
                continue
        ours = _unreachable(table.metadata, left, head, one.name.target)
        removed += sum(_delete_files(table, snapshot) for snapshot in ours)
        if ours:
            forget(one, table, [snapshot.snapshot_id for snapshot in ours])
            table = one.load(left.table_id)
            continue  # what one of them has repeated can go now
        return removed + (remove_unstaged(one, table, left, check) if picked else 0)
    raise StoreError(f"{one.name}: changes faster than it can be cleaned up")


def _unreachable(metadata: TableMetadata, left: Left, head: int | None, target: str) -> tuple[Snapshot, ...]:
    """Return the attempt's snapshots to which nothing leads, newest first."""
    # An append that was published anew still uses the data files of those that it repeats.
    repeated = [source for snapshot in metadata.snapshots if (source := _repeats(snapshot)) is not None]
    tips = [*(ref.snapshot_id for ref in metadata.refs.values()), *repeated, left.committed]
    used = {snapshot.snapshot_id for tip in tips for snapshot in ancestors(metadata, tip)}
    ours = {snapshot.snapshot_id for snapshot in metadata.snapshots if left.marks(snapshot)}
    for picked in (head, left.picked):
        snapshot = None if picked is None else metadata.snapshot_by_id(picked)
        if snapshot is not None and _repeats(snapshot) is None:
            # A statement that only drops files leaves no mark on its snapshot.
            steps = Staged(metadata, snapshot.snapshot_id, left.base, target).steps
            ours |= {step.snapshot_id for step in steps if step.summary and step.summary.operation is Operation.DELETE}
    return tuple(
        snapshot
        for snapshot in reversed(metadata.snapshots)
        if snapshot.snapshot_id in ours and snapshot.snapshot_id not in used
    )


def _repeats(snapshot: Snapshot) -> int | None:
    """Return the staged snapshot that one on main repeats."""
    source = None if snapshot.summary is None else snapshot.summary.get(SOURCE)
    return int(str(source)) if source else None


def _delete_files(table: Table, snapshot: Snapshot) -> int:
    """Delete what a snapshot brought in, its list of manifests last: until then a look after a kill finds the rest."""
    try:
        manifests = snapshot.manifests(table.io)
    except FileNotFoundError:
        return 0
    removed = 0
    for manifest in manifests:
        if manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        try:
            entries = manifest.fetch_manifest_entry(table.io)
        except FileNotFoundError:
            continue
        for entry in entries:
            if entry.status == ManifestEntryStatus.ADDED and entry.snapshot_id == snapshot.snapshot_id:
                table.io.delete(entry.data_file.file_path)
                removed += 1
        table.io.delete(manifest.manifest_path)
        removed += 1
    table.io.delete(snapshot.manifest_list)
    return removed + 1
