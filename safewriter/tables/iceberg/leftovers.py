"""What ended attempts have staged and nobody has published: taken out of the table, then deleted from S3.

A file is ours exactly if a snapshot of the attempt brought it in, and no branch, tag or other snapshot leads to that
one; or if its name bears the attempt's mark (`MarkedFileIO`), and no snapshot at all holds it: then a task was ended
before there was one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table.snapshots import Operation

from safewriter.objects.location import Location
from safewriter.objects.store import StoreError
from safewriter.tables.iceberg.publishing import drop_branch, forget
from safewriter.tables.iceberg.staging import SOURCE, Staged, ancestors, branch_of, head_of, is_marked

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

    from safewriter.state import AttemptRecord
    from safewriter.tables.iceberg.catalog import OneTable

__all__ = ["Left", "remove_left"]

_TRIES_MAX: Final = 20
_DATA_PATHS: Final = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")


@dataclass(frozen=True, slots=True)
class Left:
    """What may be left of an attempt: its branch, the snapshot that was picked of it, those that bear its mark."""

    branch: str
    table_id: str | None
    base: int
    write_key: str
    epoch: str
    picked: int | None = None

    @classmethod
    def of(cls, write_key: str, attempt: AttemptRecord) -> Left:
        """Return what an attempt that has ended may have left."""
        return cls(
            branch=branch_of(attempt),
            table_id=attempt.table_id,
            base=attempt.version_before,
            write_key=write_key,
            epoch=str(attempt.epoch),
            picked=attempt.commit_version,
        )

    def marks(self, snapshot: Snapshot) -> bool:
        """Tell whether a snapshot says that it is of this attempt, or of an earlier one of the same write."""
        return is_marked(snapshot, self.write_key, int(self.epoch))

    def branches(self, metadata: TableMetadata) -> list[str]:
        """Return the branches of the same write's earlier attempts, of which a late request may have come after their
        clean-up, and its own, as far as they are there.
        """
        earlier = [name for name in metadata.refs if name != self.branch and self.is_named_by(name)]
        return [*earlier, *([self.branch] if self.branch in metadata.refs else [])]

    def is_named_by(self, name: str) -> bool:
        """Tell whether a branch or a file bears the name of this attempt, or of an earlier one of the same write."""
        write, epoch, _ = self.branch.rsplit("-", 2)
        if not epoch.isdigit():  # the branch of a block that was skipped
            return name.startswith(self.branch)
        found = re.match(rf"{re.escape(write)}-(\d+)-[0-9a-f]{{16}}(-|$)", name)
        return found is not None and (int(found[1]) < int(epoch) or name.startswith(self.branch))


def remove_left(one: OneTable, left: Left, may_go_on: Callable[[], bool]) -> int:
    """Drop the branch, and delete what only it led to; return how many files went.

    Raises `StoreError` if the work could not be finished, also when `may_go_on` says no.
    """
    removed = 0
    table = one.load(left.table_id)
    # If it has been expired, what it brought in cannot be told from what it did not.
    picked = left.picked is None or table.metadata.snapshot_by_id(left.picked) is not None
    for _ in range(_TRIES_MAX):
        _check(one, may_go_on)
        head = head_of(table.metadata, left.branch)
        branches = left.branches(table.metadata)
        if branches:
            dropped = drop_branch(one, table, branches[0], left.base)
            table = one.load(left.table_id)
            if not dropped or branches[1:]:
                continue
        ours = _unreachable(table.metadata, left, head)
        removed += sum(_delete_files(table, snapshot) for snapshot in ours)
        if ours:
            forgotten = forget(one, table, [snapshot.snapshot_id for snapshot in ours])
            table = one.load(left.table_id)
            if not forgotten:
                continue
        return removed + (_remove_unstaged(one, table, left, may_go_on) if picked else 0)
    raise StoreError(f"{one.name}: changes faster than it can be cleaned up")


def _check(one: OneTable, may_go_on: Callable[[], bool]) -> None:
    if not may_go_on():
        raise StoreError(f"{one.name}: out of time while cleaning up")


def _remove_unstaged(one: OneTable, table: Table, left: Left, may_go_on: Callable[[], bool]) -> int:
    """Delete the files with the attempt's mark that no snapshot holds, and abort unfinished uploads of such."""
    place = _data_folder(table)
    store, folder = one.store(place), f"{place.key}/"
    marked = []
    for listed in store.list(folder):
        _check(one, may_go_on)
        if left.is_named_by(listed.key.rsplit("/", 1)[-1]):
            marked.append(listed.key)
    # Nobody can have committed this attempt's own files before it began.
    own = all(key.rsplit("/", 1)[-1].startswith(left.branch) for key in marked)
    kept = _committed_since(table, left.base if own else 0) if marked else set()
    unstaged = [key for key in marked if key not in kept]
    for key in unstaged:
        _check(one, may_go_on)
        store.delete(key)
    for upload in store.uploads(folder):
        if left.is_named_by(upload.key.rsplit("/", 1)[-1]):
            store.abort(upload)
    return len(unstaged)


def _data_folder(table: Table) -> Location:
    """Return where the table's data files lie, as Iceberg's location providers decide it."""
    properties = table.metadata.properties
    named = (properties[name] for name in _DATA_PATHS if name in properties)
    return Location.parse(next(named, f"{table.metadata.location}/data"))


def _committed_since(table: Table, base: int) -> set[str]:
    """Return the keys of all files that anybody's commits since `base` have brought in or carried on."""
    before = table.metadata.snapshot_by_id(base)
    sequence = 0 if before is None else before.sequence_number or 0
    older = {snapshot.snapshot_id for snapshot in ancestors(table.metadata, base)}
    manifests = {
        manifest.manifest_path: manifest
        for snapshot in table.metadata.snapshots
        if snapshot.snapshot_id not in older
        for manifest in snapshot.manifests(table.io)
        if not sequence or manifest.sequence_number > sequence
    }
    return {
        Location.parse(entry.data_file.file_path).key
        for manifest in manifests.values()
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
    }


def _unreachable(metadata: TableMetadata, left: Left, head: int | None) -> tuple[Snapshot, ...]:
    """Return the attempt's snapshots to which nothing leads, newest first."""
    # An append that was published anew still uses the data files of those that it repeats.
    repeated = [source for snapshot in metadata.snapshots if (source := _repeats(snapshot)) is not None]
    tips = [*(ref.snapshot_id for ref in metadata.refs.values()), *repeated]
    used = {snapshot.snapshot_id for tip in tips for snapshot in ancestors(metadata, tip)}
    ours = {snapshot.snapshot_id for snapshot in metadata.snapshots if left.marks(snapshot)}
    for picked in (head, left.picked):
        snapshot = None if picked is None else metadata.snapshot_by_id(picked)
        if snapshot is not None and _repeats(snapshot) is None:
            # A statement that only drops files leaves no mark on its snapshot.
            steps = Staged(metadata, snapshot.snapshot_id, left.base).steps
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
