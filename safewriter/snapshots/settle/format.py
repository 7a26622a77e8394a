"""Snapshots as a format: a table is the prefix of its snapshots, and a commit moves `_CURRENT`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.identity import canonical_table

if TYPE_CHECKING:
    from safewriter.objects.location import Location
    from safewriter.record.document import Checkpoint
    from safewriter.tables.format import Format, Settling
    from safewriter.tables.table import Table

__all__ = ["FORMAT"]


class _Snapshot:
    def parse(self, table: str) -> Location:
        return canonical_table(table)

    def table(self, document: Checkpoint, settling: Settling) -> Table:
        from safewriter.snapshots.settle.table import SnapshotTable

        store = settling.table_store(str(canonical_table(document.table)))
        return SnapshotTable(store, settling.clock, settling.may_go_on, settling.rehearsal)


FORMAT: Final[Format] = _Snapshot()
