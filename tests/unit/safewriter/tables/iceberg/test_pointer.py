"""Tests for each catalog that keeps the pointer to a metadata file; REST has tests of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.catalog import load_catalog

from safewriter.errors import UnsupportedError
from safewriter.objects.location import Location
from safewriter.objects.store import StoreError
from safewriter.tables.iceberg.catalogs import open_pointer
from safewriter.tables.iceberg.name import TableName
from soal.testing.s3 import EmbeddedS3
from tests.support.memory_store import MemoryObjectStore
from tests.unit.safewriter.tables.iceberg.fenced import FENCE, FencedTable, GlueTable, SqlTable, fenced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(params=["sql", "sql of the first version", "glue"])
def table(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FencedTable]:
    if request.param == "glue":
        with EmbeddedS3() as aws:
            glue = GlueTable(aws.endpoint, monkeypatch)
            yield glue
            glue.drop()
        return
    sql = SqlTable(tmp_path, monkeypatch)
    if request.param != "sql":
        sql.sql("ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
        sql.catalog = load_catalog(sql.name.catalog, **sql.catalog.properties)
    yield sql


@pytest.fixture
def lite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqlTable:
    """The quickest one, for tests to which the kind makes no difference."""
    return SqlTable(tmp_path, monkeypatch)


@pytest.mark.parametrize("version", [1, 2])
def test_a_fence_is_the_tag_that_pyiceberg_would_add(table: FencedTable, version: int) -> None:
    """A commit of pyiceberg's own with the same tag changes the known fields in the same way, in both versions."""
    table.create_again(version)
    before, fence = table.load(), table.fence()
    held = table.pointer().read()
    assert held is not None
    assert table.pointer().commit(held, fence)

    after = table.load()
    assert FENCE in after.metadata.refs
    assert after.metadata.last_updated_ms >= before.metadata.last_updated_ms
    at = {"last_updated_ms": after.metadata.last_updated_ms}
    assert after.metadata == fenced(before, fence).model_copy(update=at)


def test_what_is_read_is_the_file(lite: SqlTable) -> None:
    """All of the file, also unknown fields."""
    lite.rewrite(lambda text: text.replace('{"location"', '{"of-tomorrow":{"n":9007199254740993},"location"', 1))
    held = lite.pointer().read()
    assert held is not None
    assert held.metadata == json.loads(lite.file())
    assert held.metadata["of-tomorrow"] == {"n": 9007199254740993}


def test_nothing_that_nobody_here_knows_is_changed(table: FencedTable) -> None:
    """A format, a transform, a field and a number of a later version stay as they were written."""
    known = {'"format-version":2': '"format-version":3', '"bucket[4]"': '"zorder[4]"', '"long"': '"geography(srid:1)"'}
    more = '"next-row-id":9007199254740993,"of-tomorrow" : [1.10, 1e400, "\\u00e9\\/é"],'

    def tomorrow(text: str) -> str:
        for old, new in known.items():
            assert old in text
            text = text.replace(old, new)
        return text.replace("{", "{" + more, 1)

    shown, fence = Location.parse(table.load().metadata_location).key, table.fence()
    table.rewrite(tomorrow)
    held = table.pointer().read()
    assert held is not None
    assert table.pointer().commit(held, fence)

    after, before = table.pointer().read(), table.lake.get(shown)
    assert after is not None
    assert before is not None
    assert exactly(after.version.text) == exactly(before.body.decode())
    assert all(new in after.version.text for new in known.values())


def exactly(text: str) -> list[tuple[str, Any]]:
    """Return all that a fence must not change: fields in their order, numbers as they are written."""
    fields = json.loads(text, parse_float=str, parse_int=str, object_pairs_hook=list)
    return [field for field in fields if field[0] not in ("refs", "last-updated-ms", "metadata-log")]


def test_pyiceberg_goes_on_from_a_fence(table: FencedTable) -> None:
    """The next commit is made from the fenced file, under the next number, and keeps the fence."""
    held = table.pointer().read()
    assert held is not None
    assert table.pointer().commit(held, table.fence())
    shown = table.load().metadata_location
    table.add("third")

    after = table.load()
    assert FENCE in after.metadata.refs
    assert after.metadata.metadata_log[-1].metadata_file == shown
    names = [one.rpartition("/")[2][:5] for one in (shown, after.metadata_location)]
    assert names == ["00003", "00004"]


def test_the_first_of_two_fences_wins(table: FencedTable) -> None:
    """The second one finds that the table has changed since it was read."""
    held, fence = table.pointer().read(), table.fence()
    assert held is not None
    assert table.pointer().commit(held, fence)
    shown = table.load().metadata_location
    assert not table.pointer().commit(held, fence)
    assert table.load().metadata_location == shown


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [
        lambda table: table.add("third"),
        lambda table: table.load().manage_snapshots().create_tag(table.fence().snapshot_id, "theirs").commit(),
        lambda table: table.create_again(),
    ],
    ids=["a snapshot", "another tag", "another table of the name"],
)
def test_a_fence_comes_too_late(table: FencedTable, other: Callable[[FencedTable], None]) -> None:
    """Another commit has come since the table was read; it stays as it is."""
    held, fence = table.pointer().read(), table.fence()
    other(table)
    before = table.load()
    assert held is not None
    assert not table.pointer().commit(held, fence)
    assert table.load().metadata == before.metadata
    assert table.load().metadata_location == before.metadata_location


def test_a_table_that_is_gone(table: FencedTable) -> None:
    """It is read as None, and a fence for it is too late."""
    held, fence = table.pointer().read(), table.fence()
    table.catalog.drop_table(table.name.identifier)
    assert held is not None
    assert not table.pointer().commit(held, fence)
    assert table.pointer().read() is None


@pytest.mark.slow
def test_there_is_no_table_in_a_namespace_that_is_not_there(table: FencedTable) -> None:
    """It counts as gone, like the table."""
    name = TableName.parse("lite.other.t")
    assert open_pointer(name, table.properties, table.table_store).read() is None


@pytest.mark.parametrize("text", ["", "{", '{"format-version":2', "[]", '{"refs":{}}{}', "[" * 100_000, "\xff"])
def test_a_damaged_file_is_an_error_of_the_catalog(lite: SqlTable, text: str) -> None:
    """It proves nothing about the table, so nothing is decided."""
    lite.rewrite(lambda _: text)
    with pytest.raises(StoreError, match="catalog 'lite'"):
        lite.pointer().read()


def test_a_file_that_is_not_there_is_an_error(lite: SqlTable) -> None:
    """As above; a bucket that may not be read says the same."""
    for one in [*lite.lake.list("")]:
        lite.lake.delete(one.key)
    with pytest.raises(StoreError, match="is not there, or cannot be read"):
        lite.pointer().read()


def test_a_rotated_secret_reaches_a_catalog_that_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pyiceberg reads its variables when it is imported; a warm function lives on, and its password does not.

    What the session says of the catalog wins over variables, as it always did.
    """
    opened: list[tuple[str, dict[str, Any]]] = []

    def load(name: str, **properties: Any) -> object:
        opened.append((name, properties))
        raise ConnectionError("nobody listens")

    monkeypatch.setattr("pyiceberg.catalog.load_catalog", load)
    one = open_pointer(
        TableName.parse("lake.db.t"), {"type": "rest", "uri": "https://session"}, lambda _: pytest.fail("no store")
    )
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", "https://environment")
    for credential in ("id:first", "id:second"):
        monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__OAUTH2__CREDENTIAL", credential)
        with pytest.raises(StoreError, match=r"catalog 'lake'.*nobody listens"):
            one.read()

    assert [properties["oauth2.credential"] for _, properties in opened] == ["id:first", "id:second"]
    assert {properties["uri"] for _, properties in opened} == {"https://session"}


def test_a_catalog_is_opened_once(lite: SqlTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until its properties change."""
    assert lite.pointer().read() is not None
    monkeypatch.setattr("sqlalchemy.create_engine", lambda *_, **__: pytest.fail("opened again"))
    assert lite.pointer().read() is not None


def test_what_cannot_be_reached_at_all_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of ours says what to do, and counts as no error of the catalog."""
    name = TableName.parse("lake.db.t")
    with pytest.raises(UnsupportedError, match="use PostgreSQL"):
        open_pointer(name, {"type": "jdbc", "uri": "jdbc:oracle:x"}, lambda _: pytest.fail("no store")).read()


def test_a_catalog_of_which_nothing_is_said_is_refused() -> None:
    """A checkpoint of an older version may lack its properties."""
    with pytest.raises(UnsupportedError, match=r"nothing says how to reach the catalog 'lake' of lake\.db\.t"):
        open_pointer(TableName.parse("lake.db.t"), {}, lambda _: MemoryObjectStore())
