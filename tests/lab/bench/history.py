"""Build a long history for an Iceberg table by its metadata file alone: as if each snapshot came from a commit."""

from __future__ import annotations

import copy
import itertools
import json
from typing import TYPE_CHECKING, Any, Final

from safewriter.objects.location import Location
from safewriter.objects.s3 import table_store

if TYPE_CHECKING:
    from pyiceberg.table import Table

__all__ = ["lengthen"]

_SUMMARY: Final = {
    "spark.app.id": "local-1795000000000",
    "added-data-files": "1",
    "added-records": "10",
    "added-files-size": "7",
    "changed-partition-count": "1",
    "total-records": "10",
    "total-files-size": "7",
    "total-data-files": "1",
    "total-delete-files": "0",
    "total-position-deletes": "0",
    "total-equality-deletes": "0",
    "engine-version": "4.1.1",
    "app-id": "local-1795000000000",
    "engine-name": "spark",
    "iceberg-version": "Apache Iceberg 1.12.0 (commit 0123456789abcdef0123456789abcdef01234567)",
}
"""The summary that Spark writes with each append."""


def lengthen(table: Table, snapshots: int) -> None:
    """Add `snapshots` snapshots to the table's metadata file, before its only one; all share that one's files."""
    where = Location.parse(table.metadata_location)
    store = table_store(str(Location(where.bucket)))
    found = store.get(where.key)
    if found is None:
        raise RuntimeError(f"{table.metadata_location} is not there")
    metadata: dict[str, Any] = json.loads(found.body)
    (only,) = metadata["snapshots"]
    only["summary"] = {"operation": "append", **_SUMMARY}
    chain = [copy.deepcopy(only) for _ in range(snapshots)]
    for number, one in enumerate(chain[:-1], start=1):
        one["snapshot-id"] = only["snapshot-id"] - number
    for before, one in itertools.pairwise(chain):
        one["parent-snapshot-id"] = before["snapshot-id"]
    metadata["snapshots"] = chain
    metadata["snapshot-log"] = [
        {"snapshot-id": one["snapshot-id"], "timestamp-ms": one["timestamp-ms"]} for one in chain
    ]
    store.put(where.key, json.dumps(metadata).encode())
