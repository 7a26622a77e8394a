"""A format as small as can be: tables are names, and a write is published by an entry in a dictionary of this process.

`docs/concepts/formats.md` shows it as an example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.errors import UnsupportedError
from safewriter.record.document import Status
from safewriter.tables.table import Landed, Move, Table, Trace, UndecidableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from safewriter.record.document import Checkpoint
    from safewriter.tables.format import Format, Settling
    from safewriter.tables.session import BlockReport, Session
    from safewriter.tables.table import Intent

__all__ = ["FORMAT", "PUBLISHED"]

PUBLISHED: Final[dict[str, int]] = {}
"""The epoch under which each write was published, by its key; a negative one fences the write."""


class ToyTable(Table):
    def next_move(self, document: Checkpoint, intent: Intent) -> Move:
        # Here a read and the fence are one step. On S3 the fence must be a conditional PUT, or the like.
        epoch = PUBLISHED.setdefault(document.write_key, -document.epoch)
        if epoch == document.epoch:
            return Move(Status.COMMITTED, f"{intent.cause} after it was published", Landed(epoch))
        return Move(Status.ROLLED_BACK, f"{intent.cause}: it was not published")

    def confirm(self, document: Checkpoint, report: BlockReport) -> Move:
        return Move(Status.COMMITTED, landed=Landed(PUBLISHED[document.write_key]))

    def trace(self, write_key: str, since_ms: int) -> Trace | None:
        epoch = PUBLISHED.get(write_key)
        return None if epoch is None else Trace(abs(epoch), Landed(epoch) if epoch > 0 else None, succeeded=epoch > 0)

    def trace_from(self, write_key: str, version: int) -> Trace:
        found = self.trace(write_key, version)
        if found is None:
            raise UndecidableError("a dictionary forgets nothing")
        return found


class _Toy:
    def parse(self, table: str) -> str:
        if not table.startswith("toy:"):
            raise UnsupportedError(f"{table!r} is no toy; write toy:NAME")
        return table

    def session(self, spark: SparkSession, table: str) -> Session:
        raise NotImplementedError  # a session needs Spark: safewriter/tables/session.py says what it gives

    def table(self, document: Checkpoint, settling: Settling) -> Table:
        return ToyTable()


FORMAT: Final[Format] = _Toy()
