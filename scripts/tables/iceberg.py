"""An Iceberg table, read by pyiceberg and from its plain files, not by the code that writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table.snapshots import ancestors_of

from safewriter.objects.location import Location
from safewriter.objects.s3 import S3ObjectStore
from scripts.tables.delta import TableView
from soal.orphans.iceberg import catalog_of, referred

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_s3 import S3Client
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot


def view(client: S3Client, catalog: Mapping[str, str], name: str) -> TableView:
    """Read the table `catalog.namespace.table`. Its version is the number of snapshots of main; -1: there is no table.

    `catalog` holds pyiceberg's properties. `orphans` are data files that no snapshot names.
    """
    catalog_name, _, identifier = name.partition(".")
    try:
        table = catalog_of(catalog_name, catalog, lambda uri: _store(client, uri)).load_table(identifier)
    except (NoSuchTableError, NoSuchNamespaceError):
        return TableView(-1, 0, 0, ())
    snapshots = main_snapshots(table)
    summary = snapshots[-1].summary if snapshots else None
    rows, files = (int((summary and summary.get(f"total-{kind}")) or 0) for kind in ("records", "data-files"))
    references = referred(table)
    place = Location.parse(f"{table.metadata.location}/data")
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=f"{place.key}/")
    keys = [row["Key"] for page in pages for row in page.get("Contents", ()) if not row["Key"].endswith("/")]
    orphans = tuple(key for key in keys if str(Location(place.bucket, key)) not in references)
    return TableView(len(snapshots), rows, files, orphans)


def main_snapshots(table: Table) -> list[Snapshot]:
    """Return the snapshots of main, oldest first."""
    current = table.metadata.current_snapshot()
    return [] if current is None else list(ancestors_of(current, table.metadata))[::-1]


def _store(client: S3Client, uri: str) -> S3ObjectStore:
    location = Location.parse(uri)
    return S3ObjectStore(client, location.bucket, location.key)
