"""An attempt of the run: it claims with the code under test, and commits as Delta and gate do."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from safewriter.block.claim import Claim, Claimer
from safewriter.deadline import Deadline
from safewriter.identity import Attempt, Run
from safewriter.objects import PreconditionFailed, Upload
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import Checkpoint, Status
from safewriter.schedule import Schedule
from safewriter.settle.recovery import Cause, Evidence
from safewriter.tables.session import TableState
from tests.unit.safewriter.delta_log import DeltaLog, File, append_actions, body_of, creation, key_of
from tests.unit.safewriter.surroundings import WHOLE_MS

if TYPE_CHECKING:
    from safewriter.record.checkpoints import HeldCheckpoint, StoredCheckpoint
    from tests.unit.safewriter.failing import Network
    from tests.unit.safewriter.surroundings import Surroundings

LEAD_MS = 30_000


class Job:
    """One attempt of the run: step by step, so that a test can stop anywhere."""

    def __init__(
        self, world: Surroundings, nonce: str, network: Network, *, deadline_ms: int | None = WHOLE_MS
    ) -> None:
        self.world = world
        self.network = network
        self.attempt = Attempt(nonce)
        self.bucket = network.store(world.bucket)
        self.log = DeltaLog(network.store(world.lake))
        self.checkpoints = Checkpoints(self.bucket)
        self.recovery = world.recovery(network)
        self.deadline: Deadline | None = None
        if deadline_ms is not None:  # a job that has run for long may begin a block late
            at_ms = world.now_ms + deadline_ms
            self.deadline = Deadline(at_ms, min(world.now_ms, at_ms - 2 * LEAD_MS), world.clock)
        self.held: HeldCheckpoint | None = None
        self.files: tuple[File, ...] = ()
        self.slot = -1
        self._body = b""

    @property
    def claimer(self) -> Claimer:
        world = self.world
        return Claimer(
            self.checkpoints,
            self.recovery,
            dataclasses.replace(world.write, run=Run("run", f"run-of-{self.attempt.nonce}", "request", "job")),
            self.attempt,
            world.commit_point,
            None if self.deadline is None else Schedule(self.deadline, LEAD_MS),
            world.clock,
            world.sleep,
        )

    @property
    def document(self) -> Checkpoint:
        assert self.held is not None
        return self.held.document

    def state(self) -> TableState:
        """Read the table as the guard does."""
        head = self.log.head
        if head < 0:
            return TableState(-1, None, (), {})
        metadata = self.log.actions("metaData")[-1]
        features = self.log.actions("protocol")[-1].get("writerFeatures", ())
        (begun_on,) = self.world.lake.list(key_of(head))
        modified_ms = int(begun_on.last_modified.timestamp() * 1000)
        return TableState(head, metadata["id"], tuple(features), metadata["configuration"], modified_ms=modified_ms)

    def claim(self) -> Claim:
        """Steps 1 to 4."""
        claimer = self.claimer
        before = self.state()
        claimer.announce()
        claim = claimer.claim(before)
        self.held = claim.checkpoint
        return claim

    def begin(self, *paths: str) -> Job:
        """Claim, put the data files (and one that a failed task left), and prepare the commit."""
        assert not self.claim().already_committed
        self.put_data(*paths)
        return self

    def put_data(self, *paths: str) -> None:
        prefix = self.document.attempt.prefix
        names = paths or ("{}part-00000.parquet", "{}part-00001.parquet")
        self.files = tuple(File(name.format(prefix)) for name in names)
        for key in (*(file.key for file in self.files), self.leftover):
            self.log.store.put(key, b"parquet")
        self.world.lake.begin_upload(Upload(f"{prefix}part-00003.parquet", self.attempt.nonce))

    @property
    def leftover(self) -> str:
        return f"{self.document.attempt.prefix}part-00002.parquet"

    def prepare(self) -> None:
        """Fix the commit on the table as it is now."""
        self.slot = self.log.head + 1
        actions = append_actions(self.files, txn=(self.world.key, self.document.epoch))
        if self.slot == 0:
            actions += self.created()
        self._body = body_of(actions)

    def created(self) -> list[dict[str, Any]]:
        return creation(self.world.properties, self.world.features)

    def note(self) -> bool:
        """Write the creation note, if one is needed; return False if another process has closed the creation."""
        if self.document.attempt.version_before >= 0:
            return True
        body = body_of([*self.created(), {"note": {"nonce": self.attempt.nonce}}])
        try:
            self.bucket.create(self.checkpoints.note_key(self.world.key, self.document.epoch), body)
        except PreconditionFailed:
            return False
        return True

    def send(self) -> bool:
        """Send the prepared commit once, as a request that is in flight when its process dies."""
        return self.log.put(self.slot, self._body)

    def commit(self) -> bool:
        """Commit as Delta does through the gate."""
        self.prepare()
        return self.note() and self.rebase()

    def rebase(self) -> bool:
        """Send the prepared commit into the first free slot, unless a fence stands between the claim and the slot.

        Delta itself does not rebase a commit that creates the table.
        """
        for _ in range(100):
            if self.fenced():
                return False
            if self.send():
                return True
            if self.slot == 0:
                return False
            self.slot += 1
        raise AssertionError

    def fenced(self) -> bool:
        """Look as the gate does: for a transaction of the write with this epoch or a later one."""
        return any(
            txn["appId"] == self.world.key and txn["version"] >= self.document.epoch
            for version in range(self.document.attempt.version_before + 1, self.slot)
            for txn in self.log.actions("txn", version)
        )

    def land(self) -> Job:
        """Commit; this must succeed."""
        assert self.commit()
        return self

    def success(self) -> bool:
        """Record committed, if the log holds our version; return whether the document says so."""
        version = next(
            (
                version
                for version in self.log.versions
                for action in self.log.read(version)
                if action.get("txn", {}).get("appId") == self.world.key
                and action["txn"]["version"] == self.document.epoch
                and not any("FENCE" in str(other.get("commitInfo")) for other in self.log.read(version))
            ),
            None,
        )
        if version is None:
            return False
        assert self.held is not None
        moved = self.document.moved(
            Status.COMMITTED,
            commit_version=version,
            settled_ms=self.world.now_ms,
            settled_by=Cause.SUCCESS.value,
        )
        won = self.checkpoints.replace(self.held, moved)
        if won is None:
            found = self.checkpoints.read(self.world.key)
            return found is not None and found.document.status is Status.COMMITTED and self.owns(found)
        self.held = won
        return True

    def owns(self, stored: StoredCheckpoint) -> bool:
        return stored.document.owner == self.attempt.nonce

    def run(self) -> bool:
        """Do the whole job, as a retry does; return False if it failed, and is settled as failed."""
        if self.claim().already_committed:
            return True
        self.put_data()
        if self.commit() and self.success():
            return True
        self.recovery.settle(self.world.key, Cause.EXCEPTION, Evidence(self.document.epoch))
        return False
