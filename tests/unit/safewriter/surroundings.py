"""A checkpoint bucket, a table, a clock, and a settler of the writes in them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from safewriter.identity import Run, Write, canonical_table
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import Checkpoint, CommitPoint
from safewriter.record.liveness import GRACE_MS, LEASE_MS
from safewriter.settle.recovery import Cause, Evidence, Recovery
from tests.support.memory_store import MemoryObjectStore
from tests.unit.safewriter.delta_log import DeltaLog, File
from tests.unit.safewriter.failing import Network

if TYPE_CHECKING:
    from collections.abc import Callable

TABLE = "s3://lake/accommodations"
WHOLE_MS = 600_000
NOTHING_KNOWN = Evidence()


class RecordingStore(MemoryObjectStore):
    """Remembers every body that was ever written."""

    def __init__(self, now: Callable[[], datetime], bucket: str) -> None:
        super().__init__(now, bucket)
        self.written: list[tuple[str, bytes]] = []

    def _write(self, key: str, body: bytes) -> str:
        self.written.append((key, body))
        return super()._write(key, body)

    def contents(self) -> dict[str, bytes]:
        """Return all objects."""
        return {key: body for key, (body, _, _) in self._objects.items()}


class Surroundings:
    """Everything outside of the processes. `existing`: the table is there, with one foreign file, before any job."""

    def __init__(
        self,
        commit_point: CommitPoint = CommitPoint.WRITE,
        *,
        existing: bool = True,
        properties: dict[str, str] | None = None,
        features: tuple[str, ...] = (),
        table: str = TABLE,
    ) -> None:
        self.now_ms = 1_800_000_000_000
        self.commit_point = commit_point
        self.table = table
        self.properties = properties or {}
        self.features = features
        self.bucket = RecordingStore(self.now, "checkpoints")
        self.lake = RecordingStore(self.now, "lake")
        self.log = DeltaLog(self.lake)
        self.checkpoints = Checkpoints(self.bucket)
        self.foreign: list[File] = []
        if existing:
            self.log.create(self.properties, self.features)
            self.append_foreign()

    def clock(self) -> int:
        return self.now_ms

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.now_ms / 1000, UTC)

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now_ms += int(seconds * 1000)

    @property
    def write(self) -> Write:
        return Write(Run("run", "run-id", "request", "job"), canonical_table(self.table), "delta", None)

    @property
    def key(self) -> str:
        return self.write.key

    @property
    def document(self) -> Checkpoint:
        stored = self.checkpoints.read(self.key)
        assert stored is not None
        return stored.document

    def false_document(self) -> Checkpoint:
        """Return the write's document as it were if it did not know what the table is."""
        attempts = (*self.document.attempts[:-1], replace(self.document.attempt, features=(), properties={}))
        return replace(self.document, attempts=attempts)

    def marked(self) -> tuple[str, ...]:
        """Return the nonces of the attempts that have a marker."""
        return tuple(marked.nonce for marked in self.checkpoints.marked())

    def append_foreign(self) -> int:
        """Let another writer append a file of its own."""
        file = File(f"foreign-{len(self.foreign)}.parquet")
        self.foreign.append(file)
        return self.log.append(file)

    def hide(self, key: str) -> Callable[[], None]:
        """Hide an object of the lake until the returned function is called."""
        hidden = self.lake._objects.pop(key)

        def show_again() -> None:
            self.lake._objects[key] = hidden

        return show_again

    def recovery(self, network: Network | None = None, **more: Any) -> Recovery:
        """Return a settler with its process's view of the stores."""
        network = network or Network()
        bucket, lake = network.store(self.bucket), network.store(self.lake)
        return Recovery(Checkpoints(bucket), lambda _: lake, clock=self.clock, **more)

    def settle(
        self, cause: Cause = Cause.KILLED, evidence: Evidence = NOTHING_KNOWN, network: Network | None = None
    ) -> Checkpoint:
        """Settle the write and return its document."""
        stored = self.recovery(network).settle(self.key, cause, evidence)
        assert stored is not None
        return stored.document

    def owner_dies(self) -> None:
        """Let the lease of the owner expire."""
        self.now_ms += LEASE_MS + 1000

    def grace_passes(self) -> None:
        """Let every deadline and its grace pass."""
        self.now_ms += WHOLE_MS + GRACE_MS + 1000
