"""What ended attempts have staged and nobody has published: taken out of the table, then deleted from S3.

A file is ours exactly if a snapshot of the attempt brought it in, and no branch, tag or other snapshot leads to that
one. What never came to be in a snapshot is `unstaged.py`'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table.snapshots import Operation

from safewriter.objects.store import StoreError
from safewriter.tables.iceberg.metadata_files import key_of
from safewriter.tables.iceberg.publishing import drop_branch, forget
from safewriter.tables.iceberg.staging import Staged, ancestors, head_of, source_of
from safewriter.tables.iceberg.unstaged import named_since, remove_unstaged

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.manifest import ManifestFile
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

    try:
        return _remove_left(one, left, check)
    except (OSError, ValueError) as error:  # a manifest that others have deleted meanwhile, or that tells nothing
        raise StoreError(f"{one.name} could not be cleaned up: {error!r}") from error


def _remove_left(one: OneTable, left: Left, check: Callable[[], None]) -> int:
    removed = 0
    table = one.load(left.table_id)
    # If it has been expired, what it brought in cannot be told from what it did not.
    picked = left.picked is None or table.metadata.snapshot_by_id(left.picked) is not None
    for _ in range(_TRIES_MAX):
        check()
        head = head_of(table.metadata, left.branch)
        branches = left.branches(table.metadata)
        if branches:
            dropped = drop_branch(one, table, branches[0])
            table = one.load(left.table_id)
            if not dropped or branches[1:]:
                continue
        ours = _unreachable(table.metadata, left, head, one.name.target)
        if ours:
            removed += _delete_snapshots(table, ours, check)
            forget(one, table, [snapshot.snapshot_id for snapshot in ours])
            table = one.load(left.table_id)
            continue  # what one of them has repeated can go now
        return removed + (remove_unstaged(one, table, left, check) if picked else 0)
    raise StoreError(f"{one.name}: changes faster than it can be cleaned up")


def _unreachable(metadata: TableMetadata, left: Left, head: int | None, target: str) -> tuple[Snapshot, ...]:
    """Return the attempt's snapshots to which nothing leads, newest first."""
    # An append that was published anew still uses the data files of those that it repeats.
    repeated = [source for snapshot in metadata.snapshots if (source := source_of(snapshot)) is not None]
    tips = [*(ref.snapshot_id for ref in metadata.refs.values()), *repeated, left.committed]
    used = {snapshot.snapshot_id for tip in tips for snapshot in ancestors(metadata, tip)}
    ours = {snapshot.snapshot_id for snapshot in metadata.snapshots if left.marks(snapshot)}
    for picked in (head, left.picked):
        snapshot = None if picked is None else metadata.snapshot_by_id(picked)
        if snapshot is not None and source_of(snapshot) is None:
            # A statement that only drops files leaves no mark on its snapshot.
            steps = Staged(metadata, snapshot.snapshot_id, left.base, target).steps
            ours |= {step.snapshot_id for step in steps if step.summary and step.summary.operation is Operation.DELETE}
    return tuple(
        snapshot
        for snapshot in reversed(metadata.snapshots)
        if snapshot.snapshot_id in ours and snapshot.snapshot_id not in used
    )


def _delete_snapshots(table: Table, ours: tuple[Snapshot, ...], check: Callable[[], None]) -> int:
    """Delete what snapshots brought in and no other one names; return how many files went."""
    # Nothing leads to them, and yet another may carry on what they brought in: with a gap in its history, say.
    oldest = min(snapshot.sequence_number or 0 for snapshot in ours)
    kept = named_since(table, oldest, check, without={snapshot.snapshot_id for snapshot in ours})
    return sum(_delete_files(table, snapshot, kept, check) for snapshot in ours)


def _delete_files(table: Table, snapshot: Snapshot, kept: set[str], check: Callable[[], None]) -> int:
    """Delete what a snapshot brought in, its list of manifests last: until then a look after a kill finds the rest."""
    try:
        manifests = snapshot.manifests(table.io)
    except FileNotFoundError:
        return 0
    doomed = []
    for manifest in manifests:
        check()
        if manifest.added_snapshot_id == snapshot.snapshot_id:
            doomed += [*_brought_in(table, snapshot, manifest), manifest.manifest_path]
    doomed = [path for path in (*doomed, snapshot.manifest_list) if key_of(path) not in kept]
    for path in doomed:
        table.io.delete(path)
    return len(doomed)


def _brought_in(table: Table, snapshot: Snapshot, manifest: ManifestFile) -> list[str]:
    try:
        entries = manifest.fetch_manifest_entry(table.io)
    except FileNotFoundError:
        return []
    return [
        entry.data_file.file_path
        for entry in entries
        if entry.status == ManifestEntryStatus.ADDED and entry.snapshot_id == snapshot.snapshot_id
    ]
