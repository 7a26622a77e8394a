"""Commits to an Iceberg table as Spark makes them, without Spark: one data file of ten rows, by pyiceberg."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.table import Table, Transaction

__all__ = ["BODY", "ROWS", "add", "stage"]

ROWS: Final = 10
BODY: Final = b"parquet"
"""What lies at the data file's path; nobody here reads it."""


def add(table: Table, branch: str, path: str) -> None:
    """Commit a snapshot with the data file `path` to a branch."""
    with table.transaction() as change:
        stage(change, branch, path)


def stage(change: Transaction, branch: str, path: str, marks: Mapping[str, str] | None = None) -> None:
    """Add such a snapshot to what a transaction commits; `marks` become properties of the snapshot."""
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
