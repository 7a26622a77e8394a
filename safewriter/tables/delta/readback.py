"""Read a block's commit back from the table: `success()` records committed only after this check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from safewriter.errors import NotCommittedError, UnknownOutcomeError
from safewriter.record.document import Status
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

    def move(self, document: Checkpoint, report: GateState) -> Move:
        """Return committed, with the commit that landed.

        Raises `NotCommittedError` if the table does not hold the block's write, or not all of it; `UnknownOutcomeError`
        or `StoreError` if that is unknown.
        """
        if report.status is GateStatus.LANDED:
            landed = self._landed(document, report)
            self._check_remains(document, landed)
            return Move(Status.COMMITTED, landed=landed)
        if not report.answered:
            raise UnknownOutcomeError(f"the commit to {self.table} was sent and its answer has not come")
        raise NotCommittedError(self._nothing(report))

    def _landed(self, document: Checkpoint, report: GateState) -> Landed:
        commit = self.history.read(report.version, report.body)
        if commit.transactions.get(document.write_key) != document.epoch:
            raise NotCommittedError(
                f"version {report.version} of {self.table} is not the commit of this block, although the gate reported"
                " it so"
            )
        return Landed(commit.version, commit.rows, commit.bytes if report.body is None else report.added_bytes)

    def _nothing(self, report: GateState) -> str:
        """Return why a block without a commit of its own is not committed."""
        if report.passed:
            return f"the block's commit did not land in {self.table}: another commit was first"
        if report.stray:
            return (
                f"the block guards {self.table}, but its statements wrote {report.stray}, past the guard; write the"
                " guarded table, with the block's own session"
            )
        return (
            f"no statement of the block has made a commit to {self.table}: it wrote elsewhere, its error was"
            " swallowed, the table was there already (IF NOT EXISTS), or Delta skipped it for the script's own"
            " txnVersion. A block that has nothing to write says so: success(no_change=True)"
        )

    def _check_remains(self, document: Checkpoint, landed: Landed) -> None:
        """Raise for a table that exists only because an earlier attempt began to create it, and lacks the data: a
        statement with `ignore` finds it and writes nothing.
        """
        creator = next((attempt for attempt in document.attempts[:-1] if attempt.may_have_created), None)
        if creator is None:
            return
        commit = self.history.read(landed.commit_version)
        if commit.adds or commit.info.get("operationParameters", {}).get("mode") != "Ignore":
            return
        if all(document.write_key in commit.owners for commit in self.history.since(creator)):
            raise NotCommittedError(
                f"{self.table} exists only because an earlier attempt of this write began to create it; it is empty,"
                " and the write was skipped because it exists. Use mode('append'), which a retry can repeat"
            )
