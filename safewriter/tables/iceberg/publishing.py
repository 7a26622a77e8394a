"""The commits that settling makes to a table: each one changes the attempt's branch, or the target of the write, only
from what was just read there.

Publishing and dropping take the branch away in the same commit, and require it: whichever is first shuts the other out,
also a request of a dead process that lands late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    SetPropertiesUpdate,
    SetSnapshotRefUpdate,
)

from safewriter.objects.store import StoreError
from safewriter.tables.iceberg.metadata_files import read_metadata
from safewriter.tables.iceberg.reapplying import applied_again
from safewriter.tables.iceberg.staging import head_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyiceberg.table import Table
    from pyiceberg.table.refs import SnapshotRef
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.table.update import TableRequirement, TableUpdate

    from safewriter.state import Checkpoint
    from safewriter.tables.iceberg.catalog import OneTable
    from safewriter.tables.iceberg.staging import Staged

__all__ = ["drop_branch", "fast_forward", "forget", "make_branch", "publish_again", "take_back"]


def fast_forward(one: OneTable, table: Table, branch: str, staged: Staged) -> bool:
    """Set the target to the staged snapshot; False if it or the branch is not what it was."""
    updates: list[TableUpdate] = [
        _set_target(one, table, staged.snapshot_id),
        RemoveSnapshotRefUpdate(ref_name=branch),
    ]
    return one.commit(table, _publishing(one, table, branch, staged), updates)


def publish_again(one: OneTable, table: Table, branch: str, staged: Staged, document: Checkpoint) -> bool:
    """Append what is staged to a target that has moved on, as a snapshot of its own; False as above."""
    try:
        addition = applied_again(table, staged, document)
    except FileNotFoundError as error:  # somebody expires snapshots at this moment: the next look will tell
        raise StoreError(f"{one.name}: {error}") from error
    updates: list[TableUpdate] = [
        addition,
        _set_target(one, table, addition.snapshot.snapshot_id),
        RemoveSnapshotRefUpdate(ref_name=branch),
    ]
    return one.commit(table, _publishing(one, table, branch, staged), updates)


def drop_branch(one: OneTable, table: Table, branch: str) -> bool:
    """Take a branch away, so that what it stages can be published no more; False if it is not what it was.

    A statement that replaces a whole table takes main away while it writes to the branch. Then main shows again what it
    showed before.
    """
    metadata = table.metadata
    requirements = [_same(table), AssertRefSnapshotId(ref=branch, snapshot_id=head_of(metadata, branch))]
    updates: list[TableUpdate] = [RemoveSnapshotRefUpdate(ref_name=branch)]
    main = None if MAIN_BRANCH in metadata.refs else _replaced(table, branch)
    if main is not None and metadata.snapshot_by_id(main) is not None:
        requirements.append(AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=None))
        updates.append(_set(MAIN_BRANCH, main))
    return one.commit(table, requirements, updates)


def _replaced(table: Table, branch: str) -> int | None:
    """Return what main showed before the commit that took it away, if that one wrote to the branch; None if others have
    taken main away.
    """
    after = table.metadata
    for entry in reversed(after.metadata_log):
        before = read_metadata(table, entry.metadata_file)
        if before is None or branch not in before.refs:
            break
        main = head_of(before, MAIN_BRANCH)
        if main is not None:
            return main if head_of(before, branch) != head_of(after, branch) else None
        after = before
    return None


def take_back(one: OneTable, table: Table, steps: tuple[Snapshot, ...]) -> bool:
    """Let the target show what it showed before its newest snapshots, `steps`, newest first; False if it shows another
    one now.
    """
    before = steps[-1].parent_snapshot_id
    requirements = [_same(table), AssertRefSnapshotId(ref=one.name.target, snapshot_id=steps[0].snapshot_id)]
    update = RemoveSnapshotRefUpdate(ref_name=one.name.target) if before is None else _set_target(one, table, before)
    return one.commit(table, requirements, [update])


def forget(one: OneTable, table: Table, snapshot_ids: Collection[int]) -> bool:
    """Take snapshots out of the metadata to which no branch or tag leads."""
    # What the catalog checks is that no reference was moved onto them since they were looked at.
    refs: list[TableRequirement] = [
        AssertRefSnapshotId(ref=name, snapshot_id=ref.snapshot_id) for name, ref in table.metadata.refs.items()
    ]
    return one.commit(table, [_same(table), *refs], [RemoveSnapshotsUpdate(snapshot_ids=sorted(snapshot_ids))])


def make_branch(one: OneTable, table: Table, branch: str, base: int, properties: dict[str, str]) -> bool:
    """Make the branch of an attempt at `base` (0: its first commit makes it), and set table properties in one.

    A branch that Spark makes itself begins its totals (`total-records` and the like) at zero, and main would show them
    once it is published.
    """
    updates: list[TableUpdate] = [SetPropertiesUpdate(updates=properties)] if properties else []
    requirements = [_same(table)]
    if base:
        updates.append(_set(branch, base))
        requirements.append(AssertRefSnapshotId(ref=branch, snapshot_id=None))
    return not updates or one.commit(table, requirements, updates)


def _publishing(one: OneTable, table: Table, branch: str, staged: Staged) -> list[TableRequirement]:
    return [
        _same(table),
        AssertRefSnapshotId(ref=one.name.target, snapshot_id=staged.target_head),
        AssertRefSnapshotId(ref=branch, snapshot_id=head_of(table.metadata, branch)),
    ]


def _same(table: Table) -> TableRequirement:
    return AssertTableUUID(uuid=table.metadata.table_uuid)


def _set_target(one: OneTable, table: Table, snapshot_id: int) -> TableUpdate:
    return _set(one.name.target, snapshot_id, table.metadata.refs.get(one.name.target))


def _set(branch: str, snapshot_id: int, before: SnapshotRef | None = None) -> TableUpdate:
    """Let a branch show a snapshot; the retention that it had stays as it is."""
    return SetSnapshotRefUpdate(
        ref_name=branch,
        type=SnapshotRefType.BRANCH,
        snapshot_id=snapshot_id,
        max_ref_age_ms=None if before is None else before.max_ref_age_ms,
        max_snapshot_age_ms=None if before is None else before.max_snapshot_age_ms,
        min_snapshots_to_keep=None if before is None else before.min_snapshots_to_keep,
    )
