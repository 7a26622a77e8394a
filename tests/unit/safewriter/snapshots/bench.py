"""A prefix on an S3 in memory, and guarded builds that publish, die and are settled, without Spark."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from safewriter.block.claim import Claimer
from safewriter.deadline import Deadline
from safewriter.identity import Attempt, Run, Write, canonical_table
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import Checkpoint, CommitPoint
from safewriter.record.liveness import GRACE_MS
from safewriter.schedule import Schedule
from safewriter.settle.recovery import Cause, Evidence, Recovery
from safewriter.snapshots.format.current import CURRENT, Current, ManifestAt
from safewriter.snapshots.settle.leftovers import BuildId
from safewriter.snapshots.settle.table import SnapshotTable, name_of, names_of
from safewriter.snapshots.write.publish import Publisher
from safewriter.tables.session import TableState
from tests.support.memory_store import MemoryObjectStore
from tests.unit.safewriter.snapshots.format.test_manifest import MANIFEST, SHARD

if TYPE_CHECKING:
    from safewriter.objects import ObjectStore
    from safewriter.record.checkpoints import HeldCheckpoint
    from safewriter.snapshots.format.manifest import Manifest

WHOLE_MS = 600_000
DAY_MS = 86_400_000


class Bench:
    """The prefix `s3://lake/kv` and one write to it."""

    def __init__(self) -> None:
        self.now_ms = 1_800_000_000_000
        self.bucket = MemoryObjectStore(self.now, "checkpoints")
        self.lake = MemoryObjectStore(self.now, "lake")
        self.checkpoints = Checkpoints(self.bucket)
        self.publisher = Publisher(self.lake, now=self.now)
        self.groups: list[str] = []
        self.write = Write(Run("run", "run-id", "request", "job"), canonical_table("s3://lake/kv"), "snapshot", None)

    def clock(self) -> int:
        return self.now_ms

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.now_ms / 1000, UTC)

    def store(self, _: str) -> ObjectStore:
        return self.lake

    def table(self, **more: Any) -> SnapshotTable:
        return SnapshotTable(self.lake, self.clock, **{"may_go_on": lambda: True, **more})

    def recovery(self) -> Recovery:
        return Recovery(self.checkpoints, self.store, clock=self.clock)

    @property
    def document(self) -> Checkpoint:
        stored = self.checkpoints.read(self.write.key)
        assert stored is not None
        return stored.document

    @property
    def current(self) -> Current:
        found = self.lake.get(CURRENT)
        assert found is not None
        return Current.decode(found.body, CURRENT)

    def claim_other(self) -> HeldCheckpoint:
        """Begin a build of another run."""
        return self.claim(replace(self.write, run=Run("other", "other-id", "request", "job")))

    def claim(self, write: Write | None = None) -> HeldCheckpoint:
        """Begin an attempt at the build: announce and claim it."""
        write = write or self.write
        attempt = Attempt.draw()
        names = BuildId.draw(f"run-of-{attempt.nonce}", "shards", "runs", self.now())
        claimer = Claimer(
            self.checkpoints,
            self.recovery(),
            replace(write, run=Run(write.run.key, names.run_id, "request", "job")),
            attempt,
            CommitPoint.WRITE,
            Schedule(Deadline(self.now_ms + WHOLE_MS, self.now_ms, self.clock), 1),
            self.clock,
        )
        claimer.announce()
        base = self.publisher.base()
        named = None if base.current is None or not names_of(base.current, write.key) else 0
        return claimer.claim(TableState(base.version, None, (), names.document()), named).checkpoint

    def build(self, held: HeldCheckpoint) -> Manifest:
        """Write two shards, a losing attempt at one of them, the manifest, and the run's record."""
        names = BuildId.read(held.document.attempt.properties)
        self.lake.put(names.record_key, b'{"status": "running", "run_id": "r"}')
        shards = []
        for db_id in (0, 1):
            url = f"{names.run_prefix}db={db_id:05d}/attempt=00-{names.build}-a"
            self.lake.put(f"{url}/shard.db", b"shard")
            shards.append(replace(SHARD, db_id=db_id, db_url=self.lake.uri(url), row_count=5, db_bytes=7))
        self.lake.put(f"{names.run_prefix}db=00001/attempt=01-{names.build}-b/shard.db", b"lost")
        manifest = replace(MANIFEST, run_id=names.run_id, created_at=names.created_at, shards=tuple(shards))
        self.publisher.write_manifest(manifest, self.publisher.base())
        return manifest

    def publish(self, held: HeldCheckpoint) -> Manifest:
        """Build and publish, without a verdict."""
        manifest = self.build(held)
        key = BuildId.read(held.document.attempt.properties).manifest_key
        stored = self.lake.get(key)
        assert stored is not None
        at = ManifestAt(self.lake.uri(key), hashlib.sha256(stored.body).hexdigest())
        self.publisher.point(at, manifest, self.publisher.base(), attempt=name_of(held.document.attempt))
        return manifest

    def settle(self, cause: Cause = Cause.KILLED, **evidence: Any) -> Checkpoint:
        self.recovery().settle(self.write.key, cause, Evidence(**evidence))
        return self.document

    def clean(self) -> None:
        """Clean up after the time in which requests of the attempts may still land."""
        self.now_ms += WHOLE_MS + GRACE_MS + 1
        self.recovery().clean(self.write.key)

    def keys(self) -> set[str]:
        """All keys except those of run records."""
        return {listed.key for listed in self.lake.list("") if not listed.key.startswith("runs/")}

    def record(self, held: HeldCheckpoint) -> dict[str, Any]:
        found = self.lake.get(BuildId.read(held.document.attempt.properties).record_key)
        assert found is not None
        told: dict[str, Any] = json.loads(found.body)
        return told
