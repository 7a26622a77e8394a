"""Which table formats are guarded, and how a settler opens a table of each: the only place that knows them all.

An adapter is imported when a table of its format is met, so that who settles Delta tables needs nothing of Iceberg.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from safewriter.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.checkpoint import Checkpoints
    from safewriter.deadline import Clock
    from safewriter.objects.store import ObjectStore
    from safewriter.state import Checkpoint
    from safewriter.tables.table import Table

__all__ = ["TableOpener"]


@dataclass(frozen=True, slots=True)
class TableOpener:
    """What opens the table of a document. `table_store` opens an object store by its `s3://` URI."""

    table_store: Callable[[str], ObjectStore]
    checkpoints: Checkpoints
    clock: Clock
    may_go_on: Callable[[], bool] = lambda: True

    def open(self, document: Checkpoint) -> Table:
        """Return the table that a document is about; `UnsupportedError` for a format that is not known here."""
        if document.format == "delta":
            from safewriter.tables.delta.table import DeltaTable

            store = self.table_store(document.table)
            return DeltaTable(store, self.checkpoints, self.clock, may_go_on=self.may_go_on)
        raise UnsupportedError(f"{document.table}: format {document.format!r} is not guarded by this version")
