"""The writers of a random history of an Iceberg table: what their blocks do, in SQL, and what becomes of a block."""

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
    """One run's write: what a retry does again under the same step."""

    step: str
    operations: tuple[Operation, ...]

    @property
    def is_one_append(self) -> bool:
        """Whether it fits on whatever others have committed."""
        return [operation.kind for operation in self.operations] == ["append"]


@dataclass
class Stager(Writer):
    """A process with a block whose statements wait for `success()`: `todo` are those that it has not made yet, `rows`
    what it sees itself, `found` the metadata file that it began with. One that is `usurped` has been settled by others,
    and if snapshots were `expired` since it began, that which it reads may be gone.
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
    """Return the statement; it names its columns, as there may be more by now."""
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
    """Declare a block done and leave it, as a `with` does; return what it raises."""
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
