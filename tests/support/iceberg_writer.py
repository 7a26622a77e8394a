"""An Iceberg table and commits to it like Spark's, without Spark: one data file of ten rows, by pyiceberg."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField

from safewriter.tables.iceberg.catalogs import to_pyiceberg
from tests.support.iceberg_files import writing_catalog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table, Transaction

ROWS: Final = 10
BODY: Final = b"parquet"
"""The content at the data file's path, which is never read."""

IDS: Final = Schema(NestedField(1, "id", LongType(), required=False))
"""A schema with one column of ids."""


def open_catalog(name: str, properties: Mapping[str, str]) -> Catalog:
    """Open the catalog that a session reaches by these properties, and create its namespace `db`."""
    catalog = writing_catalog(name, {**to_pyiceberg(name, properties), "init_catalog_tables": "true"})
    catalog.create_namespace_if_not_exists("db")
    return catalog


def add(table: Table, branch: str, path: str) -> None:
    """Commit a snapshot with the data file `path` to a branch."""
    with table.transaction() as change:
        stage(change, branch, path)


def stage(change: Transaction, branch: str, path: str, marks: Mapping[str, str] | None = None) -> None:
    """Add such a snapshot to a transaction; `marks` become the snapshot's properties."""
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=ROWS,
        file_size_in_bytes=len(BODY),
    )
    file.spec_id = 0
    with change.update_snapshot(snapshot_properties=dict(marks or {}), branch=branch).fast_append() as producer:
        producer.append_data_file(file)
