"""A Delta log written by hand, and read by folding it, independent of the code under test."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from safewriter.objects import PreconditionFailed

if TYPE_CHECKING:
    from safewriter.objects import ObjectStore

TABLE_ID = "11111111-2222-3333-4444-555555555555"


@dataclass(frozen=True)
class File:
    """A data file. `path` is as in the log, so percent-encoded."""

    path: str
    partition_values: dict[str, str | None] = field(default_factory=dict)
    rows: int = 10

    @property
    def key(self) -> str:
        return unquote(self.path)

    def add(self, **more: Any) -> dict[str, Any]:
        return {
            "add": {
                "path": self.path,
                "partitionValues": self.partition_values,
                "size": 100,
                "modificationTime": 1,
                "dataChange": True,
                "stats": json.dumps({"numRecords": self.rows}),
                **more,
            }
        }


def key_of(version: int) -> str:
    return f"_delta_log/{version:020}.json"


def creation(
    properties: dict[str, str] | None = None, features: tuple[str, ...] = (), table_id: str = TABLE_ID
) -> list[dict[str, Any]]:
    """Return the protocol and metaData actions of a table."""
    protocol = (
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": list(features)}
        if features
        else {"minReaderVersion": 1, "minWriterVersion": 2}
    )
    schema = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    metadata = {
        "id": table_id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(schema),
        "partitionColumns": [],
        "configuration": properties or {},
        "createdTime": 1,
    }
    return [{"protocol": protocol}, {"metaData": metadata}]


def append_actions(files: tuple[File, ...], *, txn: tuple[str, int] | None = None, **info: Any) -> list[dict[str, Any]]:
    """Return the actions of an append."""
    rows = sum(file.rows for file in files)
    about = {
        "timestamp": 1,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append"},
        "operationMetrics": {"numOutputRows": str(rows)},
        "txnId": uuid.uuid4().hex,
        **info,
    }
    marked = [] if txn is None else [{"txn": {"appId": txn[0], "version": txn[1], "lastUpdated": 1}}]
    return [{"commitInfo": about}, *marked, *(file.add() for file in files)]


def body_of(actions: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(action).encode() + b"\n" for action in actions)


class DeltaLog:
    """The log in a store that is rooted at the table."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    # -- writing -----------------------------------------------------------------------------------------------------

    def create(
        self, properties: dict[str, str] | None = None, features: tuple[str, ...] = (), table_id: str = TABLE_ID
    ) -> int:
        """Create the table, empty."""
        info = {"commitInfo": {"timestamp": 1, "operation": "CREATE TABLE", "txnId": uuid.uuid4().hex}}
        return self.commit([info, *creation(properties, features, table_id)])

    def append(self, *files: File, txn: tuple[str, int] | None = None, **info: Any) -> int:
        """Put the files and append them."""
        for file in files:
            self.store.put(file.key, b"parquet")
        return self.commit(append_actions(files, txn=txn, **info))

    def commit(self, actions: list[dict[str, Any]]) -> int:
        """Write the next version."""
        version = self.head + 1
        self.store.create(key_of(version), body_of(actions))
        return version

    def tell(self) -> None:
        """Tell of the whole table beside its newest version, as Spark does."""
        told = {name: self.actions(kind)[-1] for kind, name in (("protocol", "protocol"), ("metaData", "metadata"))}
        self.store.put(f"_delta_log/{self.head:020}.crc", json.dumps(told).encode())

    def put(self, version: int, body: bytes) -> bool:
        """Send one commit; return whether its slot was free."""
        try:
            self.store.create(key_of(version), body)
        except PreconditionFailed:
            return False
        return True

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def versions(self) -> tuple[int, ...]:
        return tuple(int(one.key[11:31]) for one in self.store.list("_delta_log/") if one.key.endswith(".json"))

    @property
    def head(self) -> int:
        return max(self.versions, default=-1)

    def read(self, version: int) -> list[dict[str, Any]]:
        found = self.store.get(key_of(version))
        assert found is not None
        return [json.loads(line) for line in found.body.splitlines()]

    def actions(self, kind: str, version: int | None = None) -> list[dict[str, Any]]:
        """Return the actions of one kind, of one version or of all."""
        versions = self.versions if version is None else (version,)
        return [action[kind] for number in versions for action in self.read(number) if kind in action]

    def live(self) -> list[str]:
        """Return the keys of the files of the newest version; a file that was added twice appears twice."""
        files: list[str] = []
        for version in self.versions:
            for action in self.read(version):
                if "remove" in action:
                    files = [key for key in files if key != unquote(action["remove"]["path"])]
                elif "add" in action:
                    files.append(unquote(action["add"]["path"]))
        return sorted(files)

    def referred(self) -> set[str]:
        """Return the keys of all files that some version refers to."""
        return {unquote(action["path"]) for kind in ("add", "remove", "cdc") for action in self.actions(kind)}

    def transaction(self, app_id: str) -> int:
        """Return the stored version of an application, as Delta does; -1 for none."""
        return max((txn["version"] for txn in self.actions("txn") if txn["appId"] == app_id), default=-1)
