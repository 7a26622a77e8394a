"""What a table format is to the guard: how it names tables, guards a session's block, and settles a write."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from pyspark.sql import SparkSession

    from safewriter.deadline import Clock
    from safewriter.objects.store import ObjectStore
    from safewriter.record.checkpoints import Checkpoints
    from safewriter.record.document import Checkpoint
    from safewriter.tables.session import Session
    from safewriter.tables.table import Table

__all__ = ["Format", "Settling"]


@dataclass(frozen=True, slots=True)
class Settling:
    """What a settler has. `table_store` opens an object store by its `s3://` URI; `secrets` are what a catalog needs
    beyond the document, where the session that writes has them.
    """

    table_store: Callable[[str], ObjectStore]
    checkpoints: Checkpoints
    clock: Clock
    may_go_on: Callable[[], bool] = lambda: True
    secrets: Mapping[str, str] = field(default_factory=dict)
    rehearsal: list[str] | None = None
    """In a dry run: a format notes here what it would commit to a catalog, a line each, and commits nothing."""


class Format(Protocol):
    """One format. Its module must import neither Spark nor what only some of its methods need."""

    def parse(self, table: str) -> Hashable:
        """Return the one name of a table, whose text documents hold; `UnsupportedError` if it is not guarded."""
        ...

    def session(self, spark: SparkSession, table: str) -> Session:
        """Return the format's side of a Spark session for one block."""
        ...

    def table(self, document: Checkpoint, settling: Settling) -> Table:
        """Return the table that a document is about."""
        ...
