"""Tables to be fenced, made and read by pyiceberg, the independent judge of our files."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.table.update import SetSnapshotRefUpdate, update_table_metadata
from pyiceberg.transforms import BucketTransform

from safewriter.objects.location import Location
from safewriter.tables.iceberg.catalogs import open_pointer
from safewriter.tables.iceberg.metadata import FenceTag
from safewriter.tables.iceberg.name import TableName
from tests.support.glue_versions import check_versions
from tests.support.iceberg_writer import BODY, IDS, add, open_catalog
from tests.support.memory_store import MemoryObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

    from safewriter.objects import ObjectStore
    from safewriter.tables.iceberg.pointer import Pointer

__all__ = ["FENCE", "WEEK_MS", "FencedTable", "GlueTable", "SqlTable", "fence_on", "fenced", "make"]

FENCE = "sw-0123-1-abcd"
WEEK_MS = 7 * 24 * 3600 * 1000


def make(catalog: Any, name: TableName, version: int = 2, **more: str) -> None:
    """Create a table with a property and a sort order."""
    order = SortOrder(SortField(1, BucketTransform(4)))
    properties = {"owner": "somebody else", "format-version": str(version), **more}
    catalog.create_table(name.identifier, IDS, sort_order=order, properties=properties)


def fence_on(metadata: TableMetadata, name: str = FENCE) -> FenceTag:
    """Return a fence on what main shows."""
    return FenceTag(name, metadata.refs[MAIN_BRANCH].snapshot_id, WEEK_MS)


def fenced(table: Table, fence: FenceTag) -> TableMetadata:
    """Return a table's metadata after pyiceberg's own commit of the same tag."""
    tag = SetSnapshotRefUpdate(
        ref_name=fence.name,
        type=SnapshotRefType.TAG,
        snapshot_id=fence.snapshot_id,
        max_ref_age_ms=fence.max_ref_age_ms,
        max_snapshot_age_ms=None,
        min_snapshots_to_keep=None,
    )
    return update_table_metadata(table.metadata, (tag,), metadata_location=table.metadata_location)


class CatalogTable(ABC):
    """A table of two snapshots in a catalog that others use as well."""

    name: TableName
    properties: dict[str, str]

    def __init__(self) -> None:
        self.catalog: Any = open_catalog(self.name.catalog, self.properties)
        self.create()

    def create(self, version: int = 2) -> None:
        make(self.catalog, self.name, version)
        self.add("first")
        self.add("second")

    def create_again(self, version: int = 2) -> None:
        """Drop the table, and create another one of the same name."""
        self.catalog.drop_table(self.name.identifier)
        self.create(version)

    def add(self, name: str, branch: str = MAIN_BRANCH) -> None:
        """Commit one more snapshot."""
        table = self.load()
        where = Location.parse(f"{table.metadata.location}/data/{name}.parquet")
        self.table_store(f"s3://{where.bucket}").put(where.key, BODY)
        add(table, branch, str(where))

    @abstractmethod
    def table_store(self, uri: str) -> ObjectStore:
        """Open the store of its files."""

    def load(self) -> Table:
        table: Table = self.catalog.load_table(self.name.identifier)
        return table

    def fence(self) -> FenceTag:
        return fence_on(self.load().metadata)


class FencedTable(CatalogTable):
    """A table of two snapshots in a catalog, and an S3 in memory."""

    name = TableName.parse("lite.db.t")

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lake = MemoryObjectStore(bucket="lake")
        monkeypatch.setattr("safewriter.objects.s3.table_store", self.table_store)
        super().__init__()

    def table_store(self, uri: str) -> ObjectStore:
        assert uri == "s3://lake"
        return self.lake

    def pointer(self) -> Pointer:
        return open_pointer(self.name, self.properties, self.table_store)

    def file(self) -> str:
        """The text of the metadata file that the catalog shows."""
        found = self.lake.get(Location.parse(self.load().metadata_location).key)
        assert found is not None
        return found.body.decode()

    def rewrite(self, change: Callable[[str], str]) -> None:
        """Change the text of the metadata file, as if another writer had written it so."""
        self.lake.put(Location.parse(self.load().metadata_location).key, change(self.file()).encode())

    def files(self) -> int:
        """The number of metadata files."""
        return sum(one.key.endswith(".metadata.json") for one in self.lake.list(""))


class SqlTable(FencedTable):
    """In a SQLite file."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.database = folder / "lite.db"
        self.properties = {"type": "jdbc", "uri": f"jdbc:sqlite:{self.database}", "warehouse": "s3://lake/w"}
        super().__init__(monkeypatch)

    def sql(self, statement: str) -> list[Any]:
        """Execute a statement in the database, as another client."""
        with closing(sqlite3.connect(self.database)) as connection, connection:
            return connection.execute(statement).fetchall()


class GlueTable(FencedTable):
    """In moto's Glue, which is one for the whole process: the region is this file's own."""

    region = "eu-west-3"

    def __init__(self, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
        check_versions()
        where = {"glue.endpoint": endpoint, "client.region": self.region}
        self.properties = {"type": "glue", "warehouse": "s3://lake/w", **where}
        super().__init__(monkeypatch)

    def drop(self) -> None:
        self.catalog.glue.delete_database(Name="db")
