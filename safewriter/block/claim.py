"""Claim a write: steps 1 to 4 of the protocol.

The attempt puts its marker, then tries to create the document, and reads it only if it exists. If that document is open
and its owner dead, the attempt settles it; if the owner lives, the attempt gives up.

A missing document proves nothing, since the bucket may have been emptied. So if the table names the write, the attempt
looks there whether the table holds it. If so, it looks for the document before it creates one, and at the table once
more behind that: who commits has a document, and if that is gone, it was settled, so nobody undoes the commit any more.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from safewriter.deadline import epoch_ms
from safewriter.errors import (
    AnotherAttemptError,
    FingerprintError,
    NotCommittedError,
    TooLateError,
    TryAgainError,
    UnknownOutcomeError,
    UnsupportedError,
    UsageError,
)
from safewriter.identity import EPOCH_MAX
from safewriter.record.document import FOUND, OPEN, AttemptRecord, Checkpoint, CommitPoint, Status
from safewriter.record.liveness import Owner, Sighting, watch
from safewriter.record.marker import Marker
from safewriter.settle.recovery import Cause, Evidence

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.deadline import Clock
    from safewriter.identity import Attempt, Write
    from safewriter.record.checkpoints import Checkpoints, HeldCheckpoint, StoredCheckpoint
    from safewriter.schedule import Schedule
    from safewriter.settle.recovery import Recovery
    from safewriter.tables.session import TableState
    from safewriter.tables.table import Trace

__all__ = ["Claim", "Claimer"]

_ROUNDS_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Claim:
    """The outcome: the document that this attempt now owns, or that of a write that is already committed.

    `before` is the table's state, read for the claim.
    """

    checkpoint: HeldCheckpoint
    before: TableState
    already_committed: bool


@dataclass(frozen=True, slots=True)
class Claimer:
    """Claims a write. After the schedule's `warn_at` it is too late for a claim."""

    checkpoints: Checkpoints
    recovery: Recovery
    write: Write
    attempt: Attempt
    commit_point: CommitPoint
    schedule: Schedule | None
    clock: Clock = epoch_ms
    sleep: Callable[[float], None] = time.sleep

    def announce(self) -> None:
        """Step 1: announce the attempt."""
        self._check_time()
        self.checkpoints.mark(
            Marker.of(
                self.write,
                self.attempt,
                self.commit_point,
                started_ms=self.clock(),
                deadline_ms=self._deadline_ms(),
            )
        )

    def claim(self, before: TableState, version: int | None = None, obstacle: str | None = None) -> Claim:
        """Steps 2 to 4. Raises `TryAgainError`, `FingerprintError`, `StepError`, `UnknownOutcomeError` or, if an
        earlier attempt has left the write incomplete, `NotCommittedError`; then nothing is claimed.

        `version`: a version of the table that names the write, if the session has found one. `obstacle`: why the table
        allows no undo, if the block must be undoable; `UnsupportedError` then, but a committed write is skipped.
        """
        self._check_time()
        trace = self._trace(before, version)
        known = 0 if trace is None else trace.epoch
        reads_first = obstacle is not None or _holds(trace)
        checkpoint = None if reads_first else self.checkpoints.create(self._first(before, trace))
        if checkpoint is not None:
            return _claim_of(checkpoint, before)
        for number in range(_ROUNDS_MAX):
            stored = self.checkpoints.read(self.write.key)
            if stored is None:
                was_there = number > 0 or not reads_first
                if was_there:
                    raise TryAgainError(f"{self.checkpoints.uri(self.write.key)} was there, and is gone; try again")
                if _holds(trace) and self._trace(before, version) != trace:
                    raise TryAgainError(f"{self.write.table} has changed since it was looked at; try again")
                self._check_decided(trace)
                self._check_undoable(trace, obstacle)
                checkpoint = self.checkpoints.create(self._first(before, trace))
            else:
                self._check_fingerprint(stored.document)
                self._check_complete(stored.document)
                if stored.document.status is Status.COMMITTED:
                    self._check_name(stored.document)
                    # Recorded, so that another block of this run with the same name is recognised.
                    skipped = self.checkpoints.replace(stored, stored.document.skipped(self.write.run.delivery))
                    if skipped is not None:
                        return Claim(skipped, before, already_committed=True)
                    continue
                if stored.document.status in OPEN:
                    self._take_over(stored)
                    continue
                self._check_time()
                self._check_name(stored.document)
                trace = self._trace(before, version, stored.document)  # the write may have been undone since
                self._check_decided(trace, stored.document)
                self._check_undoable(trace, obstacle)
                # Above all that the table knows, too: a false document may say less, and a fence would pass for ours.
                record = self._record(max(stored.document.epoch, known) + 1, before)
                claimed = stored.document.claimed(record, self.commit_point, self.write.run.delivery)
                checkpoint = self.checkpoints.replace(stored, self._with_verdict(claimed, trace))
            if checkpoint is not None:
                return _claim_of(checkpoint, before)
        raise TryAgainError(f"{self.checkpoints.uri(self.write.key)} changes faster than it can be claimed; try again")

    def _trace(self, before: TableState, version: int | None, document: Checkpoint | None = None) -> Trace | None:
        """Look the write up in its table, from the version that names it, or from an undone attempt that is older."""
        attempts = () if document is None else document.attempts
        undone = next((old for old in attempts if old.commit_version is not None), None)
        if undone is not None and (version is None or (undone.commit_version or 0) < version):
            return self.recovery.table_of(self._first(before)).trace_undone(self.write.key, undone)
        if version is None:
            return None
        return self.recovery.table_of(self._first(before)).trace_from(self.write.key, version)

    def _is_undecided(self, trace: Trace | None) -> bool:
        """Return whether the table holds the write but does not show whether `success()` was called, if that counts."""
        return trace is not None and _holds(trace) and not trace.succeeded and self.commit_point is CommitPoint.SUCCESS

    def _check_decided(self, trace: Trace | None, document: Checkpoint | None = None) -> None:
        if trace is not None and trace.landed is not None and self._is_undecided(trace):
            where, version = self.checkpoints.uri(self.write.key), trace.landed.commit_version
            if document is None:
                said = f"its document {where} does not tell of it"
            elif any(attempt.commit_version not in (None, version) for attempt in document.attempts):
                said = f"it was undone, as its document {where} says, and version {version} has brought its rows back"
            else:
                said = f"its document {where} says {document.status.value}"
            raise UnknownOutcomeError(
                f"nothing was written: {self.write.table} holds this write as {version}, {said}, and with"
                " commit_point='success' SoAL cannot know whether to keep it. Look at the table. If it should stay,"
                " run the job once with commit_point='write', which skips the write; if not, delete its rows and use a"
                " new clientToken"
            )

    def _check_undoable(self, trace: Trace | None, obstacle: str | None) -> None:
        """Raise if the block would write a table that allows no undo, though it must be undoable."""
        if obstacle is not None and not _holds(trace):
            raise UnsupportedError(
                f"{self.write.table}: a commit could not be undone ({obstacle}), so commit_point='success' cannot be"
                " kept"
            )

    def _with_verdict(self, claimed: Checkpoint, trace: Trace | None) -> Checkpoint:
        """Return the document of a claim, already committed if the table holds the write.

        Claim and verdict take one request: no settler could settle an open document whose attempt began after the
        commit.
        """
        if trace is None or trace.landed is None:
            return claimed
        return claimed.moved(
            Status.COMMITTED,
            reason=f"{Cause.RETRY.value}: {FOUND}",
            settled_ms=self.clock(),
            settled_by=Cause.RETRY.value,
            version_before=trace.before,
            properties=trace.properties,  # the names in this attempt's own are of nothing that was published
            cleaned=True,  # this attempt has written nothing; the files of earlier ones are unknown
            **asdict(trace.landed),
        )

    def _take_over(self, stored: StoredCheckpoint) -> None:
        """Return once the write is settled or another process has changed it; raise if its owner lives."""
        document = stored.document

        def look() -> Sighting | None:
            again = self.checkpoints.read(self.write.key)
            return None if again is None else self.checkpoints.sighting(again)

        def may_wait() -> bool:
            self._check_time()
            return True

        owner = watch(self.checkpoints.sighting(stored), look, may_wait=may_wait, sleep=self.sleep)
        if owner is Owner.ALIVE:
            raise AnotherAttemptError(
                f"attempt {document.owner} (request {document.attempt.request_id or 'unknown'}) of run"
                f" {document.run_key!r} is alive and writes {document.table}; this attempt changed nothing. Try again"
                " when it has ended"
            )
        if owner is Owner.DEAD:
            # Only this attempt: a live one may have claimed the next epoch since.
            self.recovery.settle(self.write.key, Cause.RETRY, Evidence(document.epoch, document.owner))

    def _check_fingerprint(self, document: Checkpoint) -> None:
        if document.fingerprint != self.write.fingerprint:
            raise FingerprintError(
                f"run key {document.run_key!r} was used before with another script, other arguments, another format or,"
                f" as a part, for another value for {document.table} (step {document.step!r}). Use a new clientToken"
                " for another job"
            )

    def _check_complete(self, document: Checkpoint) -> None:
        """Raise if the write is incomplete: a skip would hide missing rows, and a new write might duplicate some."""
        if document.incomplete is not None:
            where = self.checkpoints.uri(document.write_key)
            raise NotCommittedError(
                f"an earlier attempt has left {document.table} {document.status.value}, and {document.incomplete}; a"
                f" retry would hide that. Look at the table and at {where}, mend the script, and use a new clientToken"
                " for the rows that are missing"
            )

    def _check_name(self, document: Checkpoint) -> None:
        """Raise if the write is committed and this delivery has claimed or skipped it: two blocks have the same name.

        The first block may have been in another process of the run, so the document records it.
        """
        if document.status is Status.COMMITTED and self.write.run.delivery in document.deliveries:
            raise self.write.step_error

    def _check_time(self) -> None:
        if self.schedule is not None and self.schedule.left_ms(self.schedule.warn_at_ms) <= 0:
            raise TooLateError(
                f"{self.schedule.deadline.remaining_ms()} ms before the deadline is too late to begin a write"
                f" (open writes are settled {self.schedule.lead_ms} ms before it). Try again with more time"
            )

    def _deadline_ms(self) -> int | None:
        return None if self.schedule is None else self.schedule.deadline.at_ms

    def _first(self, before: TableState, trace: Trace | None = None) -> Checkpoint:
        epoch = 1 if trace is None else trace.epoch + 1  # above each attempt whose fence or commit the table holds
        document = Checkpoint(
            run_key=self.write.run.key,
            write_key=self.write.key,
            fingerprint=self.write.fingerprint,
            table=str(self.write.table),
            format=self.write.format,
            step=self.write.step,
            commit_point=self.commit_point,
            status=Status.IN_PROGRESS,
            epoch=epoch,
            owner=self.attempt.nonce,
            attempts=(self._record(epoch, before),),
            deliveries=(self.write.run.delivery,),
        )
        return self._with_verdict(document, trace)

    def _record(self, epoch: int, before: TableState) -> AttemptRecord:
        if epoch > EPOCH_MAX:
            raise UsageError(
                f"nothing was written: {self.write.table}, or {self.checkpoints.uri(self.write.key)}, names attempt"
                f" {epoch - 1:,} of this write, which no run makes. Find out who has put that there, and use a new"
                " clientToken"
            )
        return AttemptRecord(
            epoch=epoch,
            nonce=self.attempt.nonce,
            run_id=self.write.run.id,
            request_id=self.write.run.request_id,
            prefix=self.attempt.file_prefix(self.write.key, epoch),
            deadline_ms=self._deadline_ms(),
            started_ms=self.clock(),
            version_before=before.version,
            modified_ms=before.modified_ms,
            sequence=before.sequence,
            table_id=before.table_id,
            features=before.features,
            properties=before.properties,
            catalog=before.catalog,
        )


def _holds(trace: Trace | None) -> bool:
    return trace is not None and trace.landed is not None


def _claim_of(checkpoint: HeldCheckpoint, before: TableState) -> Claim:
    return Claim(checkpoint, before, already_committed=checkpoint.document.status is Status.COMMITTED)
