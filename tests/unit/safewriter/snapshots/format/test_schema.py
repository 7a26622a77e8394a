"""The schema reader agrees with SQLite on every file that SQLite writes."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safewriter.snapshots.format.schema import check_schema

NAMES = st.text("abcdefgh_", min_size=1, max_size=40).map("t{}".format)  # no word of SQL
COLUMNS = st.lists(st.sampled_from(["a", "b TEXT", "c PRIMARY KEY", "d UNIQUE", "é", "f DEFAULT 'x'"]), unique=True)


def written(tables: dict[str, list[str]], page_size: int, rows: int) -> tuple[bytes, list[tuple[str, str, str, str]]]:
    """Return a SQLite file with these tables, and its schema as SQLite returns it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"PRAGMA page_size = {page_size}")
        for name, columns in tables.items():
            connection.execute(f"CREATE TABLE {name} (x, {', '.join(columns) or 'y'})")
            connection.executemany(f"INSERT INTO {name} (x) VALUES (?)", [("v" * 99,)] * rows)
        connection.commit()
        schema = connection.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master").fetchall()
        return connection.serialize(), schema


def refusal(body: bytes, tables: dict[str, list[str]]) -> str | None:
    try:
        check_schema(body, tables)
    except sqlite3.DatabaseError as error:
        return str(error)
    return None


@given(
    st.dictionaries(NAMES, COLUMNS, min_size=1, max_size=6),
    st.sampled_from([512, 1024, 4096, 16384, 65536]),
    st.integers(0, 50),
)
def test_what_sqlite_finds_in_a_schema_is_what_the_reader_finds(
    tables: dict[str, list[str]], page_size: int, rows: int
) -> None:
    """The rows are equal, or the file is refused: for small pages, a full schema page, and rows behind it."""
    body, schema = written(tables, page_size, rows)
    statements = {name: [sql] for kind, name, _, sql in schema if kind == "table"}
    others = [f"{kind} {name}" for kind, name, _, _ in schema if kind != "table"]
    told = refusal(body, statements)
    is_small = told is not None and "not on the first page" in told and page_size < 4096
    assert is_small or (any(repr(other) in told for other in others) if told is not None else not others)
    for name, (statement,) in statements.items():
        with pytest.raises(sqlite3.DatabaseError):
            check_schema(body, {**statements, name: [f"{statement} STRICT"]})
        with pytest.raises(sqlite3.DatabaseError):
            check_schema(body, {one: told for one, told in statements.items() if one != name})
    with pytest.raises(sqlite3.DatabaseError):
        check_schema(body, {**statements, "missing_one": ["CREATE TABLE missing_one (a)"]})


@given(st.data())
def test_whatever_the_bytes_the_schema_is_known_or_refused(data: st.DataObject) -> None:
    """If the reader accepts a changed page, SQLite finds the known schema there, or refuses the file."""
    body, ((_, name, _, statement),) = written({"kv": []}, 512, 0)
    changed = bytearray(body)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(16, 511))] = data.draw(st.integers(0, 255))
    if refusal(bytes(changed), {name: [statement]}) is not None:
        return
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(bytes(changed))
        try:
            found = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
        except sqlite3.DatabaseError:
            return
        assert found == [("table", name, name, statement)]


def test_blanks_of_a_statement_do_not_count_and_nothing_else_is_a_blank() -> None:
    """For SQLite a no-break space is a letter of a name."""
    for blank, is_known in ((" ", True), ("\n\t ", True), ("\u00a0", False), ("\x0b", False)):
        body, _ = written({"t": ["b TEXT"]}, 4096, 0)
        known = {"t": [f"CREATE TABLE t (x, b{blank}TEXT)"]}
        assert (refusal(body, known) is None) == is_known
