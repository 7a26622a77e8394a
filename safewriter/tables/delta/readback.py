"""Read a block's commit back from the table: `success()` says committed only after this check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from safewriter.errors import NotCommittedError, SupersededError, UnknownOutcomeError
from safewriter.record.document import NO_CHANGE, Status
from safewriter.tables.delta.gate import GateStatus
from safewriter.tables.table import Landed, Move

if TYPE_CHECKING:
    from safewriter.record.document import Checkpoint
    from safewriter.tables.delta.gate import GateState
    from safewriter.tables.delta.history import DeltaHistory

__all__ = ["ReadBack"]


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Reads the table without Spark. `table` is its name for messages."""

    table: str
    history: DeltaHistory

    def move(self, document: Checkpoint, seen: GateState) -> Move:
        """Return committed, with the commit that landed or with the reason why there is none.

        Raises `NotCommittedError` or `SupersededError` if the block's write is not in the table, and `StoreError` if
        that cannot be told.
        """
        if seen.status is GateStatus.LANDED:
            return Move(Status.COMMITTED, landed=self._landed(document, seen))
        if not seen.answered:
            raise UnknownOutcomeError(f"the commit to {self.table} was sent and its answer has not come")
        self._check_no_change(document, seen)
        return Move(Status.COMMITTED, NO_CHANGE)

    def _landed(self, document: Checkpoint, seen: GateState) -> Landed:
        ours = self.history.read(seen.version, seen.body)
        if ours.transactions.get(document.write_key) != document.epoch:
            raise NotCommittedError(
                f"version {seen.version} of {self.table} is not the commit of this block, although the gate reported"
                " it so"
            )
        return Landed(ours.version, ours.rows, ours.bytes if seen.body is None else seen.added_bytes)

    def _check_no_change(self, document: Checkpoint, seen: GateState) -> None:
        """Return if the block had nothing to commit; raise if it wrote elsewhere or its commit was prevented."""
        if seen.stray:
            raise NotCommittedError(
                f"the block guards {self.table}, but its statements wrote {seen.stray}, past the guard; write the"
                " guarded table, with the block's own session"
            )
        if seen.passed or seen.refusal:
            raise NotCommittedError(
                f"the block's commit did not land in {self.table} ({seen.refusal or 'another commit was first'})"
            )
        commits = self.history.since(document.attempt)
        if any(commit.settles(document.write_key, document.epoch) for commit in commits):
            raise SupersededError(f"{self.table}: this write was settled by somebody else")
        self._check_remains(document)

    def _check_remains(self, document: Checkpoint) -> None:
        """Raise for a table that exists only because an earlier attempt began to create it: it lacks the data."""
        creator = next((attempt for attempt in document.attempts[:-1] if attempt.may_have_created), None)
        if creator is None:
            return
        commits = self.history.since(creator)
        if commits and all(document.write_key in commit.owners for commit in commits):
            raise NotCommittedError(
                f"{self.table} exists only because an earlier attempt of this write began to create it; it is empty,"
                " and the write was skipped because it exists. Use mode('append'), which a retry can repeat"
            )
