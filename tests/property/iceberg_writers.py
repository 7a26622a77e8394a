"""The writers of a random history of an Iceberg table: their blocks' statements, in SQL, and the ends of the blocks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from safewriter.errors import SafeWriterError
from tests.property.operations import MOVED, Operation, draw
from tests.property.writers import Writer

if TYPE_CHECKING:
    import random

    from safewriter import SafeWriter

__all__ = ["Stager", "Work", "draw_rows", "leave", "sql"]

_ROWS: Final = ("append", "append", "append", "merge", "delete", "update", "overwrite")


@dataclass(frozen=True)
class Work:
    """One run's write: a retry repeats it under the same step."""

    step: str
    operations: tuple[Operation, ...]

    @property
    def is_one_append(self) -> bool:
        """Whether it fits on top of any other commits."""
        return [operation.kind for operation in self.operations] == ["append"]


@dataclass
class Stager(Writer):
    """A process with a block whose statements wait for `success()`: `todo` are its next statements, `rows` the rows
    that it sees, `found` the metadata file that it began with. A `usurped` one was settled by others; if snapshots were
    `expired` since it began, the one that it reads may be deleted.
    """

    work: Work | None = None
    todo: list[Operation] = field(default_factory=list)
    rows: Counter[int] = field(default_factory=Counter)
    found: str = ""
    usurped: bool = False
    expired: bool = False


def draw_rows(random: random.Random, number: int) -> Operation:
    """Draw a statement that writes rows."""
    return draw(random, number, _ROWS, vectors=False)


def sql(operation: Operation, table: str) -> str:
    """Return the statement, which names its columns, since there may be more of them by now."""
    ids = operation.ids
    rows = f"SELECT id FROM range({ids.start}, {ids.stop}, {ids.step}, 2)"
    return {
        "append": f"INSERT INTO {table} (id) {rows}",
        "overwrite": f"INSERT OVERWRITE {table} (id) {rows}",
        "merge": f"MERGE INTO {table} t USING ({rows}) s ON t.id = s.id"
        f" WHEN MATCHED THEN UPDATE SET id = t.id + {MOVED} WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
        "delete": f"DELETE FROM {table} WHERE {operation.condition}",
        "update": f"UPDATE {table} SET id = id + {MOVED} WHERE {operation.condition}",
    }[operation.kind]


def leave(block: SafeWriter) -> SafeWriterError | None:
    """Call success() and leave the block, as a `with` does; return its error."""
    error: SafeWriterError | None = None
    try:
        block.success()
    except SafeWriterError as raised:
        error = raised
    try:
        block.__exit__(None if error is None else type(error), error, None)
    except SafeWriterError as raised:
        error = raised
    return error
