"""Delta Lake as a format: tables at paths, whose commits pass the gate in the log store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.identity import canonical_table
from safewriter.objects.location import Location
from safewriter.objects.store import StoreError
from safewriter.tables.delta.history import has_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safewriter.record.document import Checkpoint
    from safewriter.tables.format import Format, Settling
    from safewriter.tables.session import Session
    from safewriter.tables.table import Table

__all__ = ["FORMAT"]


class _Delta:
    def parse(self, table: str) -> Location:
        return canonical_table(table)

    def session(self, spark: SparkSession, table: str) -> Session:
        from safewriter.tables.delta.session import DeltaSession

        return DeltaSession(spark, table)

    def table(self, document: Checkpoint, settling: Settling) -> Table:
        from safewriter.tables.delta.table import DeltaTable

        place = canonical_table(document.table)
        return DeltaTable(
            settling.table_store(str(place)),
            settling.checkpoints,
            settling.clock,
            may_go_on=settling.may_go_on,
            around=lambda: _around(place, settling),
        )


def _around(place: Location, settling: Settling) -> str | None:
    """Return the URI of a table in whose folder a place lies; None if there is none that the settler may see."""
    folders = place.key.split("/")[:-1]
    for count in range(len(folders) + 1):
        root = Location(place.bucket, "/".join(folders[:count]))
        try:
            if has_log(settling.table_store(str(root))):
                return str(root)
        except StoreError as error:
            if not error.denied:
                raise
    return None


FORMAT: Final[Format] = _Delta()
