"""Fences in a REST catalog: the server is Iceberg's own, in Java, which judges requests, requirements and metadata."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

import pytest
from pyiceberg.table.refs import MAIN_BRANCH

from safewriter.objects.location import Location
from safewriter.objects.s3 import S3ObjectStore
from safewriter.objects.store import StoreError
from safewriter.tables.iceberg.catalogs import open_pointer
from safewriter.tables.iceberg.metadata import FenceTag
from safewriter.tables.iceberg.name import TableName
from scripts.emulator.rest_catalog import RestCatalog
from soal.testing.s3 import EmbeddedS3, Match, Rule
from tests.support.network_faults import LoseReply
from tests.unit.safewriter.tables.iceberg.fenced import FENCE, WEEK_MS, CatalogTable, fenced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from safewriter.tables.iceberg.pointer import Pointer


pytestmark = pytest.mark.slow


class RestTable(CatalogTable):
    """A table of two snapshots behind the server; `sql` is the server's own access to it."""

    def __init__(self, s3: EmbeddedS3, server: RestCatalog) -> None:
        self.s3 = s3
        self.properties = {"type": "rest", "uri": server.uri}
        self.sql = {"type": "jdbc", "uri": f"jdbc:sqlite:{server.database}"}
        self.name = TableName.parse(f"rest.db.t{uuid.uuid4().hex}")
        super().__init__()

    def table_store(self, uri: str) -> S3ObjectStore:
        return S3ObjectStore(self.s3.client(), Location.parse(uri).bucket)

    def pointer(self) -> Pointer:
        return open_pointer(self.name, self.properties, lambda _: pytest.fail("the server knows the files"))

    def past_the_server(self) -> Pointer:
        """Return the same table as read from the database."""
        return open_pointer(TableName("backend", self.name.identifier), self.sql, self.table_store)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedS3, RestCatalog]]:
    folder: Path = tmp_path_factory.mktemp("rest")
    with (
        EmbeddedS3(buckets=["lake"]) as s3,
        pytest.MonkeyPatch.context() as patched,
        RestCatalog(s3, folder, "s3a://lake/w") as server,
    ):
        for name, value in s3.environment().items():
            patched.setenv(name, value)
        yield s3, server


@pytest.fixture
def table(started: tuple[EmbeddedS3, RestCatalog]) -> Iterator[RestTable]:
    yield RestTable(*started)
    started[0].wire.clear_rules()


@pytest.mark.parametrize("version", [pytest.param(1, marks=pytest.mark.matrix), 2, 3])
def test_a_fence_is_a_tag_and_changes_nothing_else(table: RestTable, version: int) -> None:
    """The server makes the same change as pyiceberg would, in each format version."""
    table.create_again(min(version, 2))
    if version > 2:  # pyiceberg writes none
        upgrade = {"updates": [{"action": "upgrade-format-version", "format-version": 3}], "requirements": []}
        path = table.catalog.url(f"namespaces/db/tables/{table.name.identifier[-1]}")
        assert table.catalog._session.post(path, data=json.dumps(upgrade)).ok
    held = table.pointer().read()
    assert held is not None
    assert held.metadata["format-version"] == version
    before, fence = table.load(), table.fence()
    assert table.pointer().commit(held, fence)

    again = table.pointer().read()
    assert again is not None
    assert again.metadata["refs"] == {**held.metadata["refs"], FENCE: fence.tag}
    changed = {name for name in again.metadata if again.metadata[name] != held.metadata[name]}
    assert changed - {"last-updated-ms"} == {"refs", "metadata-log"}
    after = table.load()
    expected = fenced(before, fence).model_copy(update={"last_updated_ms": after.metadata.last_updated_ms})
    assert after.metadata == expected


@pytest.mark.parametrize(
    "other",
    [
        lambda table: table.load().manage_snapshots().create_tag(table.fence().snapshot_id, FENCE).commit(),
        lambda table: table.create_again(),
        lambda table: table.catalog.drop_table(table.name.identifier),
    ],
    ids=["the fence is there", "another table", "no table"],
)
def test_a_fence_comes_too_late(table: RestTable, other: Callable[[RestTable], None]) -> None:
    """Another writer has committed since the table was read, and its commit stays as it is."""
    held, fence = table.pointer().read(), table.fence()
    other(table)
    before = table.pointer().read()
    assert held is not None
    assert not table.pointer().commit(held, fence)
    after = table.pointer().read()
    assert (after and after.metadata) == (before and before.metadata)


def test_a_commit_that_is_none_of_its_business_is_no_obstacle(table: RestTable) -> None:
    """The server checks the requirements, not the whole table."""
    held, fence = table.pointer().read(), table.fence()
    with table.load().transaction() as change:
        change.set_properties(theirs="1")
    assert held is not None
    assert table.pointer().commit(held, fence)
    assert table.load().properties["theirs"] == "1"
    assert FENCE in table.load().metadata.refs


def test_there_is_no_table_in_a_namespace_that_is_not_there(table: RestTable) -> None:
    """The namespace is as missing as the table."""
    table.name = TableName.parse("rest.other.t")
    assert table.pointer().read() is None


def test_a_snapshot_that_is_not_there_leaves_it_open(table: RestTable) -> None:
    """The target is gone, and main's snapshot was expired since: the server answers 400, and the next read decides."""
    held = table.pointer().read()
    assert held is not None
    with pytest.raises(StoreError, match=r"answers 400: .*unknown snapshot"):
        table.pointer().commit(held, FenceTag(FENCE, 5, WEEK_MS))


@pytest.mark.parametrize("status", [None, pytest.param(502, marks=pytest.mark.matrix), 503])
def test_a_lost_answer_is_an_error_and_the_fence_is_there(table: RestTable, status: int | None) -> None:
    """The next read finds it; the same request is too late."""
    held, fence = table.pointer().read(), table.fence()
    assert held is not None
    rule = table.s3.wire.add(Rule(Match(operations={"CatalogChange"}), LoseReply(status)))
    with pytest.raises(StoreError):
        table.pointer().commit(held, fence)
    assert rule.hits == 1
    again = table.pointer().read()
    assert again is not None
    assert FENCE in again.metadata["refs"]
    assert not table.pointer().commit(held, fence)


@pytest.mark.parametrize("version", [pytest.param(1, marks=pytest.mark.matrix), 2])
def test_java_reads_what_is_written_without_it(table: RestTable, version: int) -> None:
    """A fence that bypasses the server, written to its database with its own metadata file: the server shows it, checks
    the whole file as usual, and continues from there.
    """
    table.create_again(version)
    before, fence, held = table.load(), table.fence(), table.past_the_server().read()
    assert held is not None
    assert table.past_the_server().commit(held, fence)

    shown = table.load()
    expected = fenced(before, fence).model_copy(update={"last_updated_ms": shown.metadata.last_updated_ms})
    assert shown.metadata == expected
    table.add("third")
    after = table.load().metadata
    assert (len(after.snapshots), set(after.refs)) == (3, {MAIN_BRANCH, FENCE})
    assert after.metadata_log[-1].metadata_file == shown.metadata_location


def test_java_reads_old_metadata_that_is_fenced_without_references(table: RestTable) -> None:
    """Main is written beside the fence: Iceberg takes the current snapshot for main only if there are no references."""
    table.create_again(version=1)
    before = table.load()
    where = Location.parse(before.metadata_location)
    store = table.table_store(f"s3://{where.bucket}")
    found = store.get(where.key)
    assert found is not None
    metadata = json.loads(found.body)
    refs = metadata.pop("refs")
    store.put(where.key, json.dumps(metadata).encode())
    held, fence = table.past_the_server().read(), table.fence()
    assert held is not None
    assert table.past_the_server().commit(held, fence)

    again = table.pointer().read()
    assert again is not None
    assert again.metadata["refs"] == {**refs, FENCE: fence.tag}
    table.add("third")
    assert len(table.load().metadata.snapshots) == 3
