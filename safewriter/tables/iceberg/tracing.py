"""What a table's metadata tells of a write that has no document."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Final

from pyiceberg.table.refs import MAIN_BRANCH

from safewriter.tables.iceberg.staging import EPOCH, ancestors, head_of, is_first, is_marked, landed, source_of
from safewriter.tables.table import RetentionGapError, Trace

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

__all__ = ["trace"]

# How far the clock of an attempt and that of who commits may be apart.
_CLOCKS_MS: Final = 300_000


def trace(metadata: TableMetadata, write_key: str, target: str, since_ms: int) -> Trace | None:
    """Return the write as its target shows it, None if the table has nothing of it.

    Raises `RetentionGapError` if something of the write is elsewhere in the table, or if the target's history does not
    reach back to the time.
    """
    if target != MAIN_BRANCH and target not in metadata.refs:
        raise RetentionGapError(f"the branch {target} is gone, and with it what it showed")
    ours = {
        snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots if is_marked(snapshot, write_key, sys.maxsize)
    }
    line = tuple(ancestors(metadata, head_of(metadata, target)))
    for snapshot in line:
        marked = ours.get(snapshot.snapshot_id) or ours.get(source_of(snapshot) or 0)
        if marked is not None and marked.summary is not None:
            return Trace(int(marked.summary.get(EPOCH) or 1), landed(snapshot), snapshot.parent_snapshot_id or 0)
    staged = re.compile(rf"{re.escape(write_key[:15])}-\d+-[0-9a-f]{{16}}")
    elsewhere = [*map(str, ours), *(name for name in metadata.refs if staged.fullmatch(name))]
    if elsewhere:
        raise RetentionGapError(f"{elsewhere[0]} is of this write and not in {target}: staged, picked or dropped")
    if line and not is_first(line[-1]) and line[-1].timestamp_ms >= since_ms - _CLOCKS_MS:
        raise RetentionGapError(f"snapshots of {target} were expired since the write began")
    return None
