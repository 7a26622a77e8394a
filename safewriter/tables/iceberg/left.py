"""How what an ended attempt may have left is known: by the names and marks that begin with its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from safewriter.state import Status
from safewriter.tables.iceberg.staging import branch_of, is_marked

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

    from safewriter.state import AttemptRecord, Checkpoint

__all__ = ["Left"]


@dataclass(frozen=True, slots=True)
class Left:
    """What may be left of an attempt: its branch, the snapshot that was picked of it, those that bear its mark.

    `committed`: the snapshot by which the write has come into its target. It stays, also if somebody sets that back.
    `since_ms` is when the first attempt of the same write began, in epoch milliseconds by its own clock.
    """

    branch: str
    table_id: str | None
    base: int
    write_key: str
    epoch: str
    since_ms: int
    picked: int | None = None
    committed: int | None = None

    @classmethod
    def of(cls, document: Checkpoint, attempt: AttemptRecord, since_ms: int) -> Left:
        """Return what an attempt that has ended may have left."""
        return cls(
            branch=branch_of(attempt),
            table_id=attempt.table_id,
            base=attempt.version_before,
            write_key=document.write_key,
            epoch=str(attempt.epoch),
            since_ms=since_ms,
            picked=attempt.commit_version,
            committed=document.attempt.commit_version if document.status is Status.COMMITTED else None,
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
