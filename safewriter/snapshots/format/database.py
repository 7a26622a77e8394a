"""Open untrusted SQLite files: all manifests and shards are opened here.

SQLite executes a file's schema: a view is a program, and so is a generated column or a virtual table. Pages may refer
to each other in a circle, and many rows to the same megabyte. So only tables with the writers' own statements are read,
which `schema` checks before SQLite opens the file. The number of steps and the size of values are bounded by the size
of the file.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

from safewriter.snapshots.format.schema import PAGE_MAX, check_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = ["check_pages", "damage", "longest", "of_bytes", "of_file", "unlimited"]

_STEPS: Final = 10_000
"""SQLite calls the progress handler after this many steps of its machine. A short row takes about 5 steps a byte."""
_STEPS_AT_LEAST: Final = 1_000_000
_STEPS_A_BYTE: Final = 20
_LONGEST_AT_LEAST: Final = 1 << 20
_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 1 << 16,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 50,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
}
_PRAGMAS: Final = (
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "query_only = ON",
    "ignore_check_constraints = ON",  # `integrity_check` would run them
)


def of_bytes(body: bytes, tables: Mapping[str, Sequence[str]]) -> sqlite3.Connection:
    """Open a file in memory, and check its pages: then no row is there twice, nor larger than the file.

    `tables`: all tables of the file, with the statements by which writers create them. Raises `sqlite3.Error`, which
    says what is wrong.
    """
    check_schema(body[:PAGE_MAX], tables)
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(body)
        _guard(connection, len(body))
        check_pages(connection, tables)
    except BaseException:
        connection.close()
        raise
    return connection


def of_file(path: Path, tables: Mapping[str, Sequence[str]], *pragmas: str) -> sqlite3.Connection:
    """Open a file that no process changes any more. Its pages are not checked: call `check_pages` before any seek.

    The connection may go from thread to thread, but only one may use it at a time. Raises as `of_bytes` does.
    """
    try:
        with path.open("rb") as file:
            check_schema(file.read(PAGE_MAX), tables)
    except OSError as error:
        raise sqlite3.OperationalError(str(error)) from error
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
        _guard(connection, path.stat().st_size)
    except BaseException:
        connection.close()
        raise
    return connection


def unlimited(connection: sqlite3.Connection) -> None:
    """Remove the bound of steps, for statements that seek one row by its key."""
    connection.set_progress_handler(None, 0)


def damage(connection: sqlite3.Connection) -> str | None:
    """Return the first problem that SQLite's integrity check finds, or None."""
    (answer,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    return None if answer == "ok" else _begin(answer)


def longest(connection: sqlite3.Connection) -> int:
    """Return the maximum size in bytes of a value in the file or in a statement."""
    return connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH)


def check_pages(connection: sqlite3.Connection, tables: Iterable[str]) -> None:
    """Raise `sqlite3.DatabaseError` unless each page of these tables is referred to once.

    This takes less time than a SHA-256 of the file. Without it a seek may never end: a seek is one step to SQLite, so
    the progress handler cannot interrupt it.
    """
    for table in tables:
        (answer,) = connection.execute(f"PRAGMA quick_check({table})").fetchone()
        if answer != "ok":
            raise sqlite3.DatabaseError(f"it is damaged: {_begin(answer)}")


def _begin(answer: str) -> str:
    """Return the headline of SQLite's answer, and the first problem below it."""
    return " ".join(answer.splitlines()[:2])


def _guard(connection: sqlite3.Connection, size: int) -> None:
    left = iter(range((_STEPS_AT_LEAST + _STEPS_A_BYTE * size) // _STEPS))
    connection.set_progress_handler(lambda: next(left, None) is None, _STEPS)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(size, _LONGEST_AT_LEAST))
    for limit, most in _LIMITS.items():
        connection.setlimit(limit, most)
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
