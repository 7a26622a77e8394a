"""A fence moves an Iceberg table's pointer in a SQL catalog of either version, and pyiceberg reads the result."""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy.engine.default import DefaultDialect

from safewriter.objects.location import Location
from safewriter.objects.store import StoreError
from safewriter.tables.iceberg.catalogs import open_pointer
from tests.unit.safewriter.tables.iceberg.fenced import FENCE, SqlTable, fenced

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqlTable:
    return SqlTable(tmp_path, monkeypatch)


def test_the_row_remembers_the_file_before(table: SqlTable) -> None:
    """Like every catalog on a database; no other row changes."""
    table.catalog.create_namespace("other")
    for row in ("('lite', 'other', 't', 'x', NULL, 'TABLE')", "('more', 'db', 't', 'y', NULL, 'TABLE')"):
        table.sql(f"INSERT INTO iceberg_tables VALUES {row}")
    before = table.load().metadata_location
    held = table.pointer().read()
    assert held is not None
    assert table.pointer().commit(held, table.fence())

    rows = table.sql("SELECT metadata_location, previous_metadata_location FROM iceberg_tables ORDER BY catalog_name")
    assert sorted(rows, key=lambda row: len(row[0])) == [
        ("x", None),
        ("y", None),
        (table.load().metadata_location, before),
    ]


def test_a_view_is_no_table(table: SqlTable) -> None:
    """Databases of the second version hold views in the same rows."""
    table.sql("UPDATE iceberg_tables SET iceberg_type = 'VIEW'")
    assert table.pointer().read() is None


def test_a_row_of_the_first_version_in_a_database_of_the_second_is_a_table(table: SqlTable) -> None:
    """The column was added later, and is empty."""
    table.sql("UPDATE iceberg_tables SET iceberg_type = NULL")
    assert table.pointer().read() is not None


def test_a_database_without_tables_of_iceberg_is_an_error(table: SqlTable) -> None:
    """The settings are wrong; as a dropped table it would get a verdict."""
    table.sql("DROP TABLE iceberg_tables")
    with pytest.raises(StoreError, match=r"catalog 'lite'.*iceberg_tables"):
        open_pointer(table.name, table.properties, table.table_store).read()


def test_a_lost_answer_is_an_error_and_the_fence_is_there(table: SqlTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next read finds it."""
    held, fence = table.pointer().read(), table.fence()
    assert held is not None
    commit: Any = DefaultDialect.do_commit

    def lost(dialect: DefaultDialect, connection: Any) -> None:
        commit(dialect, connection)
        raise ConnectionResetError

    with monkeypatch.context() as patched:
        patched.setattr(DefaultDialect, "do_commit", lost)
        with pytest.raises(StoreError, match=r"fence lite\.db\.t in catalog 'lite'"):
            table.pointer().commit(held, fence)
    again = table.pointer().read()
    assert again is not None
    assert FENCE in again.metadata["refs"]


def test_a_file_that_cannot_be_written_moves_nothing(table: SqlTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file comes first; the store's own error shows whether a retry may help."""
    held, fence, before = table.pointer().read(), table.fence(), table.load().metadata_location
    assert held is not None

    def refused(_key: str, _body: bytes) -> str:
        raise StoreError("PUT is refused", denied=True)

    monkeypatch.setattr(table.lake, "put", refused)
    with pytest.raises(StoreError, match=r"^PUT is refused$") as caught:
        table.pointer().commit(held, fence)
    assert caught.value.denied
    assert table.load().metadata_location == before


def test_pyiceberg_reads_what_is_compressed(table: SqlTable) -> None:
    """A table whose metadata is gzip keeps it so."""
    plain = table.load()
    location = plain.metadata_location.replace(".metadata.json", ".gz.metadata.json")
    table.lake.put(Location.parse(location).key, gzip.compress(table.file().encode()))
    table.sql(f"UPDATE iceberg_tables SET metadata_location = '{location}'")
    held, fence = table.pointer().read(), table.fence()
    assert held is not None
    assert table.pointer().commit(held, fence)

    after = table.load()
    assert after.metadata_location.endswith(".gz.metadata.json")
    assert after.metadata.refs == fenced(plain, fence).refs
    assert after.metadata.snapshots == plain.metadata.snapshots


def test_pyiceberg_reads_old_metadata_without_references(table: SqlTable) -> None:
    """It shows main, as before, and the fence."""
    table.create_again(version=1)
    before = table.load()
    table.rewrite(lambda text: re.sub(r'"refs":\{"main":\{[^}]*\}\},?', "", text))
    assert '"refs"' not in table.file()
    held, fence = table.pointer().read(), table.fence()
    assert held is not None
    assert table.pointer().commit(held, fence)
    assert table.load().metadata.refs == fenced(before, fence).refs
    assert '"main"' in table.file()
