"""The interfaces of a table format: it names tables, settles a write, and guards the block of a script."""

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

__all__ = ["Format", "ScriptFormat", "Settling"]


@dataclass(frozen=True, slots=True)
class Settling:
    """The settler's means. `table_store` opens an object store by its `s3://` URI; `secrets` are the
    properties of the table's catalog, if the settler is in the session that writes; `spark_settings` are those that
    name catalogs, if the settler has any.
    """

    table_store: Callable[[str], ObjectStore]
    checkpoints: Checkpoints
    clock: Clock
    may_go_on: Callable[[], bool] = lambda: True
    secrets: Mapping[str, str] = field(default_factory=dict)
    spark_settings: Mapping[str, str] = field(default_factory=dict)
    rehearsal: list[str] | None = None
    """In a dry run a format appends a line here instead of committing to a catalog."""


class Format(Protocol):
    """One format. Its module must import neither Spark nor modules that only some of its methods need."""

    def parse(self, table: str) -> Hashable:
        """Return the table's canonical name; documents hold its text. Raises `UnsupportedError` for a bad name."""
        ...

    def table(self, document: Checkpoint, settling: Settling) -> Table:
        """Return the table that a document is about."""
        ...


class ScriptFormat(Format, Protocol):
    """A format that Spark statements write, so that a script may open a block on it."""

    def session(self, spark: SparkSession, table: str) -> Session:
        """Return the format's side of a Spark session for one block."""
        ...
