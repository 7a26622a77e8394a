"""The schema of a SQLite file, read from its first page before SQLite opens the file.

SQLite evaluates a schema while it loads it: it reads a table named `sqlite_stat1`, and compiles each of a hundred
thousand statements. So this module checks the schema first, by the published format of the file
(https://www.sqlite.org/fileformat2.html): its rows must be the tables that a writer makes, word for word, and all on
the first page.
"""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["PAGE_MAX", "check_schema"]

PAGE_MAX: Final = 65_536
_MAGIC: Final = b"SQLite format 3\0"
_HEADER: Final = 100
_UTF8: Final = 1
_LEAF: Final = 13
_BLANKS: Final = re.compile(r"[ \t\n\r]+")
_NAME_MAX: Final = 100
_CELLS_MAX: Final = 50
"""A schema with more rows is refused: no writer makes more than two."""

_PAGE_MIN: Final = 512
_OVERFLOW: Final = 35
"""A row that is shorter than its page by this many bytes is stored whole."""
_NULL: Final = 0
_TEXT: Final = 13
"""The type of an empty text; each further byte adds 2. Even numbers are blobs."""
_COLUMNS: Final = 5
_ROOT: Final = 3
"""The index of the only column that is no text: the number of a table's first page."""
_STATEMENT: Final = 4
_MORE: Final = 0x80
_WIDTHS: Final = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
"""The sizes in bytes of the types 0 to 9: null, integers, a float, and the integers 0 and 1."""

Row = tuple[str, str, str, str]
"""Type, name, name of its table, statement."""


def check_schema(first_page: bytes, tables: Mapping[str, Sequence[str]]) -> None:
    """Raise `sqlite3.DatabaseError` unless the schema holds these tables and nothing else.

    `first_page`: at least the first `PAGE_MAX` bytes of the file. `tables`: for each table the statements by which
    writers create it; runs of blanks are equal.
    """
    try:
        rows = _rows(first_page)
    except (IndexError, ValueError) as error:
        raise sqlite3.DatabaseError(f"its schema is not on the first page as writers leave it: {error}") from None
    known = {name: {_plain(statement) for statement in statements} for name, statements in tables.items()}
    for kind, name, table, statement in rows:
        if kind != "table" or name != table or _plain(statement) not in known.get(name, ()):
            entry = f"{kind} {name}"
            shown = entry if len(entry) <= _NAME_MAX else f"{entry[:_NAME_MAX]}…"
            raise sqlite3.DatabaseError(f"its schema has {shown!r}, which is no table as writers make them")
    for name in tables:
        if sum(row[1] == name for row in rows) != 1:
            raise sqlite3.DatabaseError(f"it has no plain table {name}, or two of them")


def _plain(statement: str) -> str:
    return _BLANKS.sub(" ", statement)


def _rows(page: bytes) -> list[Row]:
    size = int.from_bytes(page[16:18], "big")
    size = PAGE_MAX if size == 1 else size
    if not page.startswith(_MAGIC) or size < _PAGE_MIN or size & (size - 1) or len(page) < size:
        raise ValueError("it is not a database")
    if int.from_bytes(page[56:60], "big") != _UTF8:
        raise ValueError("its texts are not UTF-8")
    if page[_HEADER] != _LEAF:
        raise ValueError("it has more rows, or others, than a page holds")
    count = int.from_bytes(page[_HEADER + 3 : _HEADER + 5], "big")
    if count > _CELLS_MAX:
        raise ValueError(f"it has {count} rows")
    usable = size - page[20]
    at = _HEADER + 8
    pointers = [int.from_bytes(page[at + 2 * number : at + 2 * number + 2], "big") for number in range(count)]
    return [_row(page[:usable], pointer) for pointer in pointers]


def _row(page: bytes, at: int) -> Row:
    """Read a cell: the record's size, its row id, and the record, which is a list of types and then the columns."""
    size, at = _varint(page, at)
    _, at = _varint(page, at)
    if size > len(page) - _OVERFLOW or at + size > len(page):
        raise ValueError("a row goes on behind the page")
    record = page[at : at + size]
    end, at = _varint(record, 0)
    types = []
    while at < end:
        number, at = _varint(record, at)
        types.append(number)
    if at != end or len(types) != _COLUMNS:
        raise ValueError("a row has not five columns")
    columns: list[bytes] = []
    for place, number in enumerate(types):
        is_text = number >= _TEXT and number % 2 == 1
        if is_text == (place == _ROOT) and (number, place) != (_NULL, _STATEMENT):  # an automatic index has none
            raise ValueError("a row has a column of another type")
        width = (number - _TEXT) // 2 if is_text else _WIDTHS[number]
        columns.append(record[at : at + width])
        at += width
    if at != size:
        raise ValueError("a row has not the size of its columns")
    kind, name, table, _, statement = columns
    return kind.decode(), name.decode(), table.decode(), statement.decode()


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a number of variable length: seven bits of each byte, eight of the ninth; return it and where it ends."""
    value = 0
    for place in range(at, at + 8):
        value = value << 7 | (data[place] & ~_MORE)
        if not data[place] & _MORE:
            return value, place + 1
    return value << 8 | data[at + 8], at + 9
