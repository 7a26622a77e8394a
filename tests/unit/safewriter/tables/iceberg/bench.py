"""A catalog on a SQLite file, an S3 in memory, and attempts that publish as Java does: everything but the JVM."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyiceberg.table.snapshots import ancestors_of
from pyiceberg.table.update import RemoveSnapshotsUpdate

from safewriter.block.claim import Claimer
from safewriter.deadline import Deadline
from safewriter.identity import Attempt, Run, Write
from safewriter.objects.location import Location
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import Checkpoint, CommitPoint
from safewriter.record.liveness import GRACE_MS
from safewriter.schedule import Schedule
from safewriter.settle.recovery import Cause, Evidence, Recovery
from safewriter.tables.iceberg.catalogs import open_pointer
from safewriter.tables.iceberg.name import TableName
from safewriter.tables.iceberg.table import IcebergTable, name_of
from safewriter.tables.session import TableState
from tests.support.iceberg_writer import BODY, IDS, ROWS, add, open_catalog, stage
from tests.support.memory_store import MemoryObjectStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from safewriter.objects import ObjectStore
    from safewriter.record.checkpoints import HeldCheckpoint
    from safewriter.tables.iceberg.pointer import Pointer

NAME = TableName.parse("lite.db.t")
WHOLE_MS = 600_000
DAY_MS = 86_400_000


def contents(store: ObjectStore) -> Iterator[tuple[str, bytes]]:
    """Yield keys and bodies, to be put on another S3."""
    for listed in store.list(""):
        found = store.get(listed.key)
        assert found is not None
        yield listed.key, found.body


class Bench:
    """Everything outside of the processes; the table holds one foreign file."""

    name = NAME
    schema = IDS

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms = 1_800_000_000_000
        self.bucket = MemoryObjectStore(self.now, "checkpoints")
        self.lake = MemoryObjectStore(self.now, "lake")
        self.checkpoints = Checkpoints(self.bucket)
        monkeypatch.setattr("safewriter.objects.s3.table_store", self.table_store)
        self.properties = {"type": "jdbc", "uri": f"jdbc:sqlite:{folder}/lite.db", "warehouse": "s3://lake/w"}
        monkeypatch.setenv("PYICEBERG_CATALOG__LITE__URI", f"sqlite:///{folder}/lite.db")  # by which settlers reach it
        self.catalog = open_catalog("lite", self.properties)
        self.create()
        self.add("main", "foreign-0")

    def create(self) -> None:
        self.catalog.create_table(NAME.identifier, IDS)

    def table_store(self, uri: str) -> ObjectStore:
        assert Location.parse(uri).bucket == "lake"
        return self.lake

    def clock(self) -> int:
        return self.now_ms

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.now_ms / 1000, UTC)

    def load(self) -> Table:
        return self.catalog.load_table(NAME.identifier)

    def pointer(self) -> Pointer:
        return open_pointer(self.name, self.properties, self.table_store)

    def table(self) -> IcebergTable:
        return IcebergTable(self.name, self.pointer(), self.clock, lambda: True, self.table_store)

    def add(self, branch: str, name: str) -> int:
        """Commit a snapshot with one data file of ten rows; return its id."""
        path = self._put(name)
        add(self.load(), branch, path)
        return self.refs()[branch]

    def _put(self, name: str) -> str:
        path = f"{self.load().metadata.location}/data/{name}.parquet"
        self.lake.put(Location.parse(path).key, BODY)
        return path

    def refs(self) -> dict[str, int]:
        return {name: ref.snapshot_id for name, ref in self.load().metadata.refs.items()}

    def main(self) -> list[Snapshot]:
        """The snapshots of main, oldest first."""
        metadata = self.load().metadata
        current = metadata.current_snapshot()
        return [] if current is None else list(ancestors_of(current, metadata))[::-1]

    def rows(self) -> int:
        summary = self.main()[-1].summary
        assert summary is not None
        return int(summary.get("total-records") or 0)

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
        """Begin an attempt."""
        deadline = Deadline(self.now_ms + WHOLE_MS, self.now_ms, self.clock)
        attempt = Attempt.draw()
        claimer = Claimer(
            self.checkpoints,
            self.recovery(),
            dataclasses.replace(self.write, run=Run("run", f"run-of-{attempt.nonce}", "request", "job")),
            attempt,
            commit_point,
            Schedule(deadline, 1),
            self.clock,
            self.sleep,
        )
        claimer.announce()
        metadata = self.load().metadata
        before = TableState(
            self.refs()["main"],
            str(metadata.table_uuid),
            (),
            {},
            modified_ms=metadata.last_updated_ms,
            sequence=getattr(metadata, "last_sequence_number", 0),
            catalog=self.properties,
        )
        claim = claimer.claim(before)
        assert not claim.already_committed
        return claim.checkpoint

    def publish(self, held: HeldCheckpoint, name: str | None = None) -> int:
        """Commit rows and mark in one, as `Publication.java` does; return the snapshot."""
        attempt = name_of(held.document.attempt)
        path = self._put(f"{attempt}/ours" if name is None else name)
        with self.load().transaction() as change:
            stage(change, "main", path, {"safewriter.attempt": attempt})
            snapshot = change.table_metadata.refs["main"].snapshot_id
            change.set_properties({f"safewriter.{attempt}": f"{snapshot} {ROWS} {len(BODY)} {self.now_ms}"})
        return snapshot

    def unset_mark(self, held: HeldCheckpoint) -> None:
        """Remove the mark of an attempt, as a person who tidies properties does."""
        with self.load().transaction() as change:
            change.remove_properties(f"safewriter.{name_of(held.document.attempt)}")

    def forget(self, *snapshots: int) -> None:
        """Expire snapshots, and leave the files that other snapshots name."""
        with self.load().transaction() as change:
            change._apply((RemoveSnapshotsUpdate(snapshot_ids=list(snapshots)),))

    def sleep(self, seconds: float) -> None:
        self.now_ms += int(seconds * 1000)

    def settle(self, cause: Cause = Cause.KILLED, **evidence: Any) -> Checkpoint:
        stored = self.recovery().settle(self.write.key, cause, Evidence(**evidence))
        assert stored is not None
        return stored.document

    def grace_passes(self) -> None:
        self.now_ms += WHOLE_MS + GRACE_MS + 1000
