"""The table of a schedule, as the bytes of its Delta log."""

from __future__ import annotations

import json
from typing import Any, Final

__all__ = ["LAKE", "ROOT", "TABLE", "added", "body_of", "creation", "key_of", "removed", "slot_of"]

LAKE: Final = "lake"
ROOT: Final = "t"
TABLE: Final = f"s3://{LAKE}/{ROOT}"
_SCHEMA: Final = json.dumps(
    {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
)


def key_of(version: int) -> str:
    """Return the key of a version of the table's log."""
    return f"{ROOT}/_delta_log/{version:020}.json"


def slot_of(key: str) -> int | None:
    """Return the version of a key of the table's log; None for any other key."""
    within = key.removeprefix(f"{ROOT}/_delta_log/")
    return int(within[:20]) if within != key and within.endswith(".json") else None


def body_of(*actions: dict[str, Any]) -> bytes:
    """Return a version's bytes."""
    return b"".join(json.dumps(action, separators=(",", ":")).encode() + b"\n" for action in actions)


def creation() -> tuple[dict[str, Any], ...]:
    """Return the actions that make the table."""
    return (
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "11111111-2222-3333-4444-555555555555",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": _SCHEMA,
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 1,
            }
        },
    )


def added(path: str) -> dict[str, Any]:
    """Return the action that adds a file."""
    return {
        "add": {
            "path": path,
            "partitionValues": {},
            "size": 4,
            "modificationTime": 1,
            "dataChange": True,
            "stats": '{"numRecords":1}',
        }
    }


def removed(path: str) -> dict[str, Any]:
    """Return the action that removes a file."""
    return {
        "remove": {
            "path": path,
            "deletionTimestamp": 1,
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": {},
            "size": 4,
        }
    }
