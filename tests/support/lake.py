"""A table and its checkpoint bucket, seen from outside: by boto3 and deltalake, never by the writer under test."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from safewriter.objects.s3 import S3ObjectStore
from safewriter.record.document import NO_CHANGE, OPEN
from tests.support.observed import CHECKPOINTS, LAKE, Observed

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CHECKPOINTS", "LAKE", "Lake"]


@dataclass(frozen=True)
class Lake(Observed):
    """One Delta table on one S3 endpoint."""

    endpoint: str
    name: str

    @property
    def table(self) -> str:
        return f"s3a://{LAKE}/{self.name}"

    @property
    def store(self) -> S3ObjectStore:
        return S3ObjectStore(self.client, LAKE, self.name)

    def is_named(self, table: str) -> bool:
        return table.endswith(f"/{self.name}")

    # -- the table ---------------------------------------------------------------------------------------------------

    def delta(self) -> DeltaTable | None:
        try:
            return DeltaTable(f"s3://{LAKE}/{self.name}", storage_options=self.options())
        except TableNotFoundError:
            return None

    def options(self) -> dict[str, str]:
        """The options by which deltalake reaches the table."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
        }

    def rows(self) -> int:
        table = self.delta()
        return 0 if table is None else sum(int(add) for add in _counts(table))

    def version(self) -> int:
        table = self.delta()
        return -1 if table is None else table.version()

    def operations(self) -> list[str]:
        # Read the log itself: deltalake's history holds the interpreter's lock, which would block this process's S3.
        return [
            action["commitInfo"]["operation"]
            for commit in self.commits()
            for action in commit
            if "commitInfo" in action
        ]

    def keys(self) -> set[str]:
        return {listed.key for listed in self.store.list("")}

    def history(self) -> list[object]:
        return [*self.commits()]

    def commits(self) -> list[list[dict[str, Any]]]:
        logs = sorted(
            key
            for key in self.keys()
            if key.startswith("_delta_log/") and key.endswith(".json") and "." not in key[11:31]
        )
        found = []
        for key in logs:
            stored = self.store.get(key)
            assert stored is not None
            found.append([json.loads(line) for line in stored.body.splitlines()])
        return found

    def orphans(self) -> set[str]:
        """Data files that no version of the log references, without deletion vectors, whose names hold no attempt."""
        referred = {
            unquote(action[kind]["path"])
            for commit in self.commits()
            for action in commit
            for kind in ("add", "remove", "cdc")
            if kind in action
        }
        return {
            key
            for key in self.keys()
            if not key.startswith("_delta_log/")
            and key not in referred
            and not key.endswith("/")
            and not key.startswith("deletion_vector_")
        }

    def download(self, directory: Path) -> None:
        """Copy the table's files, for readers or writers without S3."""
        for key in sorted(self.keys()):
            stored = self.store.get(key)
            assert stored is not None
            path = directory / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(stored.body)

    # -- invariants --------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Check that the log has no gap, its files exist, every document parses, and a terminal one is true."""
        commits = self.commits()
        keys = self.keys()
        assert [key for key in sorted(keys) if key.endswith(".json") and key.startswith("_delta_log/0")] == [
            f"_delta_log/{version:020}.json" for version in range(len(commits))
        ]
        for commit in commits:
            for action in commit:
                if "add" in action:
                    assert unquote(action["add"]["path"]) in keys
        for document in self.documents():
            if document.status not in OPEN and document.reason != NO_CHANGE:
                live = _live_versions(document.write_key, commits)
                assert len(live) == (1 if document.status == "committed" else 0), (document.status, live)

    def live_versions(self, write_key: str) -> list[int]:
        """The versions with the write's transaction that were not undone."""
        return _live_versions(write_key, self.commits())


def _live_versions(write_key: str, commits: list[list[dict[str, Any]]]) -> list[int]:
    ours, undone = [], set()
    for version, commit in enumerate(commits):
        info: dict[str, Any] = next((action["commitInfo"] for action in commit if "commitInfo" in action), {})
        if info.get("operation") == "SAFEWRITER REVERT":
            mark = json.loads(info["userMetadata"])["safewriter"]
            if mark["key"] == write_key:
                undone.add(mark["reverts"])
        elif info.get("operation") != "SAFEWRITER FENCE" and any(
            action.get("txn", {}).get("appId") == write_key for action in commit
        ):
            ours.append(version)
    return [version for version in ours if version not in undone]


def _counts(table: DeltaTable) -> list[int]:
    actions = table.get_add_actions(flatten=True)
    return [int(count) for count in actions.column("num_records").to_pylist()]
