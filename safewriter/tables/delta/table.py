"""Settle a write to a Delta table: fence, read, keep or revert (steps S2 to S5 of docs/concepts/settling.md)."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from safewriter.errors import UnknownOutcomeError
from safewriter.identity import EPOCH_MAX
from safewriter.record.document import BY_HAND, CommitPoint, Status
from safewriter.tables.delta.fence import NAMED_IN, fence
from safewriter.tables.delta.gate import GateState
from safewriter.tables.delta.history import DeltaHistory
from safewriter.tables.delta.leftovers import remove_files
from safewriter.tables.delta.readback import ReadBack
from safewriter.tables.delta.undo import find_again, find_live, undo, undo_obstacle
from safewriter.tables.table import Landed, Move, Table, Trace, UndecidableError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from datetime import datetime

    from safewriter.deadline import Clock
    from safewriter.objects.store import ObjectStore
    from safewriter.record.checkpoints import Checkpoints
    from safewriter.record.document import AttemptRecord, Checkpoint
    from safewriter.tables.delta.commit import Commit
    from safewriter.tables.session import BlockReport
    from safewriter.tables.table import Intent

__all__ = ["DeltaTable"]

_log = logging.getLogger(__name__)


class DeltaTable(Table):
    """The log of one table, and the checkpoint bucket's notes on it; `store` is rooted at the table's path.

    `around` looks for a table in whose folder the path lies, and returns its URI.
    """

    def __init__(
        self,
        store: ObjectStore,
        checkpoints: Checkpoints,
        clock: Clock,
        *,
        may_go_on: Callable[[], bool] = lambda: True,
        around: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._history = DeltaHistory(store, clock, may_go_on=may_go_on)
        self._checkpoints = checkpoints
        self._clock = clock
        self._may_go_on = may_go_on
        self._around = around
        self._commits: tuple[Commit, ...] | None = None

    def next_move(self, document: Checkpoint, intent: Intent) -> Move:
        """Fence, look the commit up, and return the next move; first do an undo that the document announces.

        The log is listed once. The list stays valid until this settler loses a slot behind it, which it notices.
        """
        commits, self._commits = self._commits, None
        if commits is None or document.status is not Status.ROLLING_BACK:
            commits = (
                self._history.since(document.attempt)
                if intent.nothing_sent
                else fence(self._history, document, self._checkpoints, self._clock)  # S2
            )
        commit = find_live(commits, document.write_key, document.epoch)  # S3
        if commit is None:  # S4
            if (later := find_live(commits, document.write_key, EPOCH_MAX)) is not None:
                return _of_later(document, intent, later)
            return Move(Status.ROLLED_BACK, f"{intent.cause}: no commit of this write is in the table")
        # An open document that names a commit has been rolling_back, also if it says unknown now: the undo may be
        # on its way.
        if not intent.undo and document.attempt.commit_version is None:
            return Move(Status.COMMITTED, f"{intent.cause} after the commit had landed", _landed(commit))
        obstacle = undo_obstacle(self._history, document, commit, commits)
        if obstacle is None and document.status is not Status.ROLLING_BACK:
            self._commits = commits
            return Move(Status.ROLLING_BACK, landed=Landed(commit.version))
        obstacle = obstacle or undo(self._history, document, commits, commit, self._clock)  # S5
        if obstacle is None:
            rest = ", an empty table remains" if commit.version == 0 else ""
            return Move(Status.ROLLED_BACK, f"{intent.cause}: version {commit.version} was undone{rest}")
        _log.error("version %s of %s stays: %s", commit.version, document.table, obstacle)
        reason = f"{intent.cause}: version {commit.version} could not be undone and stays"
        return Move(Status.COMMITTED, reason, _landed(commit), undo_refused=obstacle)

    def confirm(self, document: Checkpoint, report: BlockReport) -> Move:
        """Read our version back; only what the table holds is committed."""
        if not isinstance(report, GateState):
            raise TypeError(report)
        return ReadBack(document.table, self._history).move(document, report)

    def remove_leftovers(
        self,
        document: Checkpoint,
        attempts: tuple[AttemptRecord, ...],
        earlier: tuple[AttemptRecord, ...] = (),
        *,
        dead_nonce: str | None = None,
    ) -> int:
        """Delete the attempts' data files that no version since the first of them refers to.

        The document may be false, and its attempt alive: unless the log shows that an attempt commits no more, it is
        fenced before the first of its files goes.
        """
        everyone = (*earlier, *attempts)
        prefixes = tuple(attempt.prefix for attempt in everyone)
        first = min(everyone, key=lambda attempt: attempt.version_before)
        try:
            commits, begun = self._history.since_moment(first)
            _check_verdict(document, commits)

            def more(oldest: datetime, found: Collection[str]) -> tuple[Commit, ...]:
                alive = [old.epoch for old in everyone if old.prefix in found and old.nonce != dead_nonce]
                last = fence_all(max(alive)) if alive else ()
                return (*last, *since(oldest))

            def fence_all(epoch: int) -> tuple[Commit, ...]:
                # Not the document's own epoch: it may be open again.
                dead = replace(document, epoch=epoch, attempts=(first,))
                last = fence(self._history, dead, self._checkpoints, self._clock, commits)
                _check_verdict(document, last)
                return last

            def since(oldest: datetime) -> tuple[Commit, ...]:
                # The store dates objects by the second.
                is_younger = begun is not None and int(begun.timestamp()) < int(oldest.timestamp())
                if is_younger or (first.version_before < 0 and commits):  # then they are all that could name a file
                    return ()
                further = self._history.since_ms(int(oldest.timestamp()) * 1000, near=first.version_before)
                if not further:
                    self._check_alone(document.table)
                _check_verdict(document, further)
                return further

            return remove_files(self._history.store, prefixes, commits, more, self._may_go_on)
        except UndecidableError:
            if not earlier:
                raise
            # The log no longer reaches back to the earlier ones.
            return self.remove_leftovers(document, attempts, dead_nonce=dead_nonce)

    def _check_alone(self, table: str) -> None:
        """Raise `UndecidableError` if a path without a log lies inside a table: its files may be that one's."""
        if (root := self._around()) is not None:
            raise UndecidableError(f"{table} has no log, and lies inside the table {root}; no file is deleted")

    def trace(self, write_key: str, since_ms: int) -> Trace | None:
        """Look for a commit of the write that was not undone, whatever its epoch, and for fences of it.

        Not only since the time: an attempt that is clean has no marker left by which its time could be known. A claim
        looks through as many versions.
        """
        return self._trace(self._history.since_ms(since_ms, at_least=NAMED_IN), write_key)

    def trace_from(self, write_key: str, version: int) -> Trace | None:
        """Look for a commit of the write that was not undone, in a version and all that follow.

        The log may well lack it: Java may remember a version of a table that was dropped and recreated since.
        """
        return self._trace(self._history.from_version(version), write_key)

    def trace_undone(self, write_key: str, attempt: AttemptRecord) -> Trace | None:
        """Look for an undone write in all versions since its attempt began.

        Raises `UnknownOutcomeError` if one is missing: it does not come back, so no retry would ever know more.
        """
        try:
            commits = self._history.of_write(write_key, attempt)
        except UndecidableError as error:
            start = attempt.prefix.rsplit("-", 3)[0]  # of the names of all attempts, without epoch and nonce
            raise UnknownOutcomeError(
                f"nothing was written: version {attempt.commit_version} of {self._history.store.uri('')} was undone,"
                f" and whether somebody has restored its rows since is not known: {error}. Look whether the table has"
                f" rows of a file whose name (_metadata.file_name) begins with {start}-: delete them, or leave them if"
                " all are there. Use a new clientToken for what is missing"
            ) from error
        return self._trace(commits, write_key)

    def _trace(self, commits: tuple[Commit, ...], write_key: str) -> Trace | None:
        epoch = max((epoch for commit in commits for epoch in _epochs(commit, write_key)), default=0)
        commit = find_live(commits, write_key, epoch) or find_again(commits, write_key, self._history.store.uri(""))
        if commit is not None:
            return Trace(epoch, _landed(commit), commit.version - 1)
        return Trace(epoch) if epoch else None


def _of_later(document: Checkpoint, intent: Intent, later: Commit) -> Move:
    """Return the verdict if the table holds the commit of a later attempt than the document knows: either the settler
    has slept, and its move comes too late, or that attempt's document was deleted, and a late claim has made this one.

    Raises `UndecidableError` if the write counts with `success()` only, of which nothing tells.
    """
    if document.commit_point is CommitPoint.SUCCESS:
        raise UndecidableError(
            f"version {later.version} of {document.table} is of a later attempt than its document names, and nothing"
            " tells whether it should stay"
        )
    return Move(Status.COMMITTED, f"{intent.cause}: a later attempt's commit is in the table", _landed(later))


def _check_verdict(document: Checkpoint, commits: tuple[Commit, ...]) -> None:
    """Raise `UndecidableError` if the table holds a write that its document calls rolled back."""
    if document.status is not Status.ROLLED_BACK or document.attempt.settled_by == BY_HAND:
        return
    commit = find_live(commits, document.write_key, document.epoch)
    if commit is not None:
        raise UndecidableError(
            f"version {commit.version} of {document.table} holds this write, which its document calls rolled_back:"
            " somebody has changed the document or the table, so no file is deleted"
        )


def _epochs(commit: Commit, write_key: str) -> Iterator[int]:
    if (epoch := commit.epoch_of(write_key)) is not None:
        yield epoch
    signature = commit.signature  # an undo has no transaction
    if signature is not None and signature.write_key == write_key and 0 <= signature.epoch <= EPOCH_MAX:
        yield signature.epoch


def _landed(commit: Commit) -> Landed:
    return Landed(commit.version, commit.rows, commit.bytes)
