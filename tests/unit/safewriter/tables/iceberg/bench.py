"""A catalog on a SQLite file, an S3 in memory, and attempts that stage as Spark does: everything but the JVM."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.table.snapshots import ancestors_of
from pyiceberg.types import LongType, NestedField

from safewriter.checkpoint import Checkpoints
from safewriter.claim import Claimer
from safewriter.deadline import Deadline
from safewriter.identity import Attempt, Run, Write
from safewriter.liveness import GRACE_MS
from safewriter.objects import MemoryObjectStore
from safewriter.objects.location import Location
from safewriter.recovery import Cause, Evidence, Recovery
from safewriter.state import Checkpoint, CommitPoint, Status
from safewriter.tables.iceberg.catalog import OneTable
from safewriter.tables.iceberg.name import TableName
from safewriter.tables.iceberg.publishing import fast_forward, make_branch
from safewriter.tables.iceberg.settings import to_pyiceberg
from safewriter.tables.iceberg.staging import EPOCH, WRITE, Staged, branch_of, head_of
from safewriter.tables.session import TableState
from scripts.emulator.iceberg_writer import BODY, add
from scripts.soal.iceberg_table import referred

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from safewriter.checkpoint import HeldCheckpoint
    from safewriter.objects import ObjectStore

NAME = TableName.parse("lite.db.t")
WHOLE_MS = 600_000


def contents(store: ObjectStore) -> Iterator[tuple[str, bytes]]:
    """Yield keys and bodies, to be put on another S3."""
    for listed in store.list(""):
        found = store.get(listed.key)
        assert found is not None
        yield listed.key, found.body


class KilledError(BaseException):
    """Nothing catches it, as nothing catches SIGKILL."""


class Bench:
    """Everything outside of the processes; the table holds one file of somebody else's."""

    name = NAME

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms = 1_800_000_000_000
        self.bucket = MemoryObjectStore(self.now, "checkpoints")
        self.lake = MemoryObjectStore(self.now, "lake")
        self.checkpoints = Checkpoints(self.bucket)
        monkeypatch.setattr("safewriter.objects.s3.table_store", self.table_store)
        self.properties = self.reached(folder)
        own = {**to_pyiceberg("lite", self.properties), "init_catalog_tables": "true"}
        self.catalog = load_catalog("lite", **own)
        self.catalog.create_namespace("db")
        self.create()
        self.add("main", "foreign-0")

    def reached(self, folder: Path) -> dict[str, str]:
        """How the catalog is reached, in the words of a Spark session."""
        return {"type": "jdbc", "uri": f"jdbc:sqlite:{folder}/lite.db", "warehouse": "s3://lake/w"}

    def create(self) -> None:
        self.catalog.create_table(NAME.identifier, Schema(NestedField(1, "id", LongType(), required=False)))

    def table_store(self, uri: str) -> ObjectStore:
        assert Location.parse(uri).bucket == "lake"
        return self.lake

    def clock(self) -> int:
        return self.now_ms

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.now_ms / 1000, UTC)

    def one(self) -> OneTable:
        return OneTable(self.name, self.properties, self.table_store)

    def load(self) -> Table:
        return self.one().load()

    def add(self, branch: str, name: str, *, operation: str = "append", marks: dict[str, str] | None = None) -> int:
        """Commit a snapshot with one data file of ten rows; return its id."""
        table = self.catalog.load_table(NAME.identifier)
        path = f"{table.metadata.location}/data/{name}.parquet"
        self.lake.put(Location.parse(path).key, BODY)
        add(table, branch, path, operation=operation, marks=marks)
        found = head_of(self.catalog.load_table(NAME.identifier).metadata, branch)
        assert found is not None
        return found

    def main(self, branch: str = "main") -> list[Snapshot]:
        """The snapshots of main, or of another branch, oldest first."""
        metadata = self.load().metadata
        current = metadata.snapshot_by_name(branch)
        return [] if current is None else list(ancestors_of(current, metadata))[::-1]

    def rows(self, branch: str = "main") -> int:
        summary = self.main(branch)[-1].summary
        assert summary is not None
        return int(summary.get("total-records") or 0)

    def data(self) -> set[str]:
        """The data files that lie on S3."""
        return {
            one.key.rsplit("/", 1)[-1].removesuffix(".parquet") for one in self.lake.list("") if "/data/" in one.key
        }

    def referred(self) -> set[str]:
        """Everything that the table's metadata leads to."""
        return {Location.parse(path).key for path in referred(self.load())}

    def check(self) -> None:
        """All that the table needs is there."""
        assert self.referred() <= {one.key for one in self.lake.list("")}

    # -- attempts and settlers ---------------------------------------------------------------------------------------

    @property
    def write(self) -> Write:
        return Write(Run("run", "run-id", "request", "job"), self.name, "iceberg", None)

    @property
    def document(self) -> Checkpoint:
        stored = self.checkpoints.read(self.write.key)
        assert stored is not None
        return stored.document

    def recovery(self, **more: Any) -> Recovery:
        return Recovery(self.checkpoints, self.table_store, clock=self.clock, **more)

    def claim(self, commit_point: CommitPoint = CommitPoint.WRITE) -> HeldCheckpoint:
        """Begin an attempt: claim, make its branch if there is a table."""
        deadline = Deadline(self.now_ms + WHOLE_MS, self.now_ms, self.clock)
        attempt = Attempt.draw()
        claimer = Claimer(
            self.checkpoints,
            self.recovery(),
            dataclasses.replace(self.write, run=Run("run", f"run-of-{attempt.nonce}", "request", "job")),
            attempt,
            commit_point,
            deadline,
            1,
            self.clock,
            self.sleep,
        )
        claimer.mark()
        if not self.catalog.table_exists(NAME.identifier):
            return claimer.claim(TableState(-1, None, (), {}, catalog=self.properties)).held
        table = self.load()
        base = head_of(table.metadata, self.name.target) or 0
        claim = claimer.claim(TableState(base, str(table.metadata.table_uuid), (), {}, catalog=self.properties))
        assert not claim.already_committed
        branch = branch_of(claim.held.document.attempt)
        assert make_branch(self.one(), self.load(), branch, base, {"write.wap.enabled": "true"})
        return claim.held

    def stage(self, held: HeldCheckpoint, name: str = "ours", operation: str = "append") -> int:
        """Let the statement of an attempt write to its branch; return the snapshot."""
        return self.commit(held, branch_of(held.document.attempt), name, operation)

    def commit(self, held: HeldCheckpoint, branch: str = "main", name: str = "ours", operation: str = "append") -> int:
        """Let the statement of an attempt write, with its marks; return the snapshot."""
        marks = {WRITE: held.document.write_key, EPOCH: str(held.document.epoch)}
        return self.add(branch, name, operation=operation, marks=marks)

    def publish_and_die(self) -> int:
        """Publish what an attempt has staged, and leave its document at that; return the snapshot."""
        held = self.claim()
        staged = self.stage(held)
        self.checkpoints.replace(held, held.document.moved(Status.PUBLISHING, commit_version=staged))
        table, attempt = self.load(), held.document.attempt
        found = Staged(table.metadata, staged, attempt.version_before, self.name.target)
        assert fast_forward(self.one(), table, branch_of(attempt), found)
        return staged

    def sleep(self, seconds: float) -> None:
        self.now_ms += int(seconds * 1000)

    def settle(self, cause: Cause = Cause.KILLED, **evidence: Any) -> Checkpoint:
        stored = self.recovery().settle(self.write.key, cause, Evidence(**evidence))
        assert stored is not None
        return stored.document

    def grace_passes(self) -> None:
        self.now_ms += WHOLE_MS + GRACE_MS + 1000
