"""A SQLite file that somebody else may have written: a manifest, or a shard. Every one of them is opened here.

SQLite runs what a file's schema says: a view is a program, and so is a generated column or a virtual table. Pages may
refer to each other in a circle, and many rows to the same megabyte. So only tables as writers make them are read, which
`schema` decides before SQLite opens the file, within a number of steps and with values that a file of that size can
hold.
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
"""SQLite asks after so many steps of its machine whether to go on. A short row takes about 5 steps a byte."""
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
    "ignore_check_constraints = ON",  # a check of the file would run them
)


def of_bytes(body: bytes, tables: Mapping[str, Sequence[str]]) -> sqlite3.Connection:
    """Open a file that is in memory. Its pages are checked: then no row is there twice, nor larger than the file.

    `tables`: all that it may hold, with the statements by which writers make them. Raises `sqlite3.Error`, which says
    what is wrong with it.
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
    """Open a file that nobody changes any more. Its pages are not checked: `check_pages` comes before any seek.

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
    """Let statements take any number of steps: those that seek one row by its key, which is never many."""
    connection.set_progress_handler(None, 0)


def damage(connection: sqlite3.Connection) -> str | None:
    """Let SQLite check all pages of the file; return what is wrong."""
    (answer,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    return None if answer == "ok" else _begin(answer)


def longest(connection: sqlite3.Connection) -> int:
    """Return how many bytes a value can have here, be it one of the file or of a statement."""
    return connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH)


def check_pages(connection: sqlite3.Connection, tables: Iterable[str]) -> None:
    """Raise `sqlite3.DatabaseError` unless each page of these tables stands in one place.

    It takes less time than a SHA-256 of the file. Without it a seek may never end: it is one step to SQLite, so that no
    budget counts, and nothing interrupts it.
    """
    for table in tables:
        (answer,) = connection.execute(f"PRAGMA quick_check({table})").fetchone()
        if answer != "ok":
            raise sqlite3.DatabaseError(f"it is damaged: {_begin(answer)}")


def _begin(answer: str) -> str:
    """SQLite tells of every page below a headline."""
    return " ".join(answer.splitlines()[:2])


def _guard(connection: sqlite3.Connection, size: int) -> None:
    left = iter(range((_STEPS_AT_LEAST + _STEPS_A_BYTE * size) // _STEPS))
    connection.set_progress_handler(lambda: next(left, None) is None, _STEPS)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(size, _LONGEST_AT_LEAST))
    for limit, most in _LIMITS.items():
        connection.setlimit(limit, most)
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
