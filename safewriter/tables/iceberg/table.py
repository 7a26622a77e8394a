"""An Iceberg table as a settler sees it: what is staged is published or dropped. PROTOCOL.md has the steps I2 to I6."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from pyiceberg.table.refs import MAIN_BRANCH

from safewriter.errors import NotCommittedError
from safewriter.objects.store import StoreError
from safewriter.state import NO_CHANGE, Status
from safewriter.tables.iceberg.left import Left
from safewriter.tables.iceberg.leftovers import remove_left
from safewriter.tables.iceberg.publishing import drop_branch, fast_forward, publish_again, take_back
from safewriter.tables.iceberg.staging import (
    Staged,
    ancestors,
    branch_of,
    check_history,
    head_of,
    is_first,
    is_marked,
    is_ours,
    landed,
    published,
)
from safewriter.tables.iceberg.tracing import trace
from safewriter.tables.table import Move, RetentionGapError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from safewriter.state import AttemptRecord, Checkpoint
    from safewriter.tables.iceberg.catalog import OneTable
    from safewriter.tables.session import Seen
    from safewriter.tables.table import Intent, Trace

__all__ = ["IcebergTable"]

_TRIES_MAX: Final = 50


class IcebergTable:
    """One table of a catalog."""

    def __init__(self, one: OneTable, *, may_go_on: Callable[[], bool] = lambda: True) -> None:
        self._one = one
        self._target = one.name.target
        self._may_go_on = may_go_on

    def next_move(self, document: Checkpoint, intent: Intent) -> Move:
        """Pick what is staged, publish what is picked, or close the write; everything from one look at the metadata."""
        if document.status is Status.ROLLING_BACK:
            return self._take_back(document, intent)
        if document.status is Status.PUBLISHING or document.attempt.commit_version is not None:
            return self._publish(document, document.attempt.commit_version, intent)
        table = self._find(document)
        if table is None:
            return Move(Status.ROLLED_BACK, f"{intent.cause}: the table was not created")
        done = published(table.metadata, document, self._target)
        if done is None:
            if document.attempt.version_before < 0:  # what goes into main by itself can be hidden there
                check_history(table.metadata, document.attempt.version_before, self._target)
            return _close(self._staged(table, document.attempt), intent)
        if intent.undo:
            return Move(Status.ROLLING_BACK)
        return Move(Status.COMMITTED, f"{intent.cause} after it was published", landed(done))

    def confirm(self, document: Checkpoint, seen: Seen) -> Move:  # noqa: ARG002 - the table tells what is staged
        """Return publishing with the staged snapshot; or committed, if the block has created the table, or changed
        nothing at all.
        """
        table = self._find(document)
        if table is None:
            return Move(Status.COMMITTED, NO_CHANGE)
        staged = self._staged(table, document.attempt)
        done = published(table.metadata, document, self._target)
        if done is None and staged is not None:
            return _pick(staged)
        if done is None:
            _check_elsewhere(table, document)
            return Move(Status.COMMITTED, NO_CHANGE)
        if not is_marked(done, document.write_key, document.epoch - 1):
            self._check_created(table, document, staged, done)
        return Move(Status.COMMITTED, landed=landed(done))  # also if a creation of an earlier attempt has come late

    def _check_created(self, table: Table, document: Checkpoint, staged: Staged | None, done: Snapshot) -> None:
        if document.attempt.version_before >= 0:
            raise NotCommittedError(
                f"snapshot {done.snapshot_id} of {document.table} is this block's write, but it went past its branch"
                f" into {self._target}; write the guarded table by its own name, with the block's own session"
            )
        if staged is not None or len(self._ours(table, document)) > 1:
            raise NotCommittedError(
                f"the block has created {document.table} and written to it more than once, and no catalog can make that"
                " one commit; create the table before the block, and all that it writes is one"
            )

    def remove_leftovers(
        self, document: Checkpoint, attempts: tuple[AttemptRecord, ...], earlier: tuple[AttemptRecord, ...] = ()
    ) -> int:
        """Drop and delete what the attempts have staged and nobody has published."""
        since_ms = min(attempt.started_ms for attempt in (*attempts, *earlier))
        return sum(self._remove_left(document, attempt, since_ms) for attempt in attempts)

    def _remove_left(self, document: Checkpoint, attempt: AttemptRecord, since_ms: int) -> int:
        try:
            return remove_left(self._one, Left.of(document, attempt, since_ms), self._may_go_on)
        except RetentionGapError:
            if attempt.version_before >= 0:
                raise
            return 0  # the table was never created: what its tasks have written lies where no catalog tells

    def trace(self, write_key: str, since_ms: int) -> Trace | None:
        """Look for a snapshot of the write in the target; what is only staged may have been picked, or not."""
        try:
            metadata = self._one.load().metadata
        except RetentionGapError:
            return None  # there is no such table
        return trace(metadata, write_key, self._target, since_ms)

    def _find(self, document: Checkpoint) -> Table | None:
        """Return the table; None if the attempt was to create it and there is none."""
        try:
            return self._load(document)
        except RetentionGapError:
            if document.attempt.version_before >= 0:
                raise
            return None

    def _load(self, document: Checkpoint) -> Table:
        return self._one.load(document.attempt.table_id)

    def _publish(self, document: Checkpoint, picked: int | None, intent: Intent) -> Move:
        """Publish the picked snapshot: whoever reads that it was picked does, also one that would have dropped it."""
        branch, base = branch_of(document.attempt), document.attempt.version_before
        for _ in range(_TRIES_MAX):
            if not self._may_go_on():
                raise StoreError(f"{self._one.name}: out of time while publishing snapshot {picked}")
            table = self._load(document)
            done = published(table.metadata, document, self._target)
            if done is not None:
                return Move(Status.COMMITTED, f"{intent.cause}: snapshot {done.snapshot_id} is published", landed(done))
            head = head_of(table.metadata, branch)
            if picked is None or not _leads_to(table, head, picked):
                check_history(table.metadata, base, self._target)
                if head is not None and not drop_branch(self._one, table, branch):
                    continue
                reason = f"{intent.cause}: the staged snapshot {picked} is gone (expired or dropped)"
                return Move(Status.ROLLED_BACK, reason)
            staged = Staged(table.metadata, picked, base, self._target)
            if staged.is_fast_forward:
                fast_forward(self._one, table, branch, staged)
            elif staged.is_append and staged.target_head is not None:
                publish_again(self._one, table, branch, staged, document)
            elif drop_branch(self._one, table, branch):
                # Dropped before the document says so: a publishing that is still on its way finds its branch gone.
                return Move(Status.ROLLED_BACK, f"{intent.cause}: conflict, {self._moved(staged)}")
        raise StoreError(f"{self._one.name}: snapshot {picked} could not be published in {_TRIES_MAX} tries")

    def _take_back(self, document: Checkpoint, intent: Intent) -> Move:
        """Undo what went straight into the target, by the one commit that can, and only if it shows ours."""
        for _ in range(_TRIES_MAX):
            if not self._may_go_on():
                raise StoreError(f"{self._one.name}: out of time while taking a snapshot back")
            table = self._find(document)
            done = None if table is None else published(table.metadata, document, self._target)
            if table is not None and done is None:
                check_history(table.metadata, document.attempt.version_before, self._target)
            if table is None or done is None:
                return Move(Status.ROLLED_BACK, f"{intent.cause}: what it has created is taken back")
            ours = self._ours(table, document)
            refused = self._obstacle(table, document, ours)
            if refused is not None:
                return Move(Status.COMMITTED, f"{intent.cause} after it was in {self._target}", landed(done), refused)
            take_back(self._one, table, ours)
        raise StoreError(
            f"{self._one.name}: what went into {self._target} could not be taken back in {_TRIES_MAX} tries"
        )

    def _ours(self, table: Table, document: Checkpoint) -> tuple[Snapshot, ...]:
        """Return the newest snapshots of the target as far as they are the write's."""
        line = ancestors(table.metadata, head_of(table.metadata, self._target))
        return tuple(itertools.takewhile(lambda snapshot: is_ours(snapshot, document), line))

    def _staged(self, table: Table, attempt: AttemptRecord) -> Staged | None:
        """Return what stands on the attempt's branch, None if it has added nothing to it."""
        head = head_of(table.metadata, branch_of(attempt))
        staged = None if head is None else Staged(table.metadata, head, attempt.version_before, self._target)
        return staged if staged is not None and staged.steps else None

    def _obstacle(self, table: Table, document: Checkpoint, ours: tuple[Snapshot, ...]) -> str | None:
        """Tell why the target cannot show again what it showed before `ours`, its newest snapshots."""
        if not ours:
            head = head_of(table.metadata, self._target)
            return f"{self._target} has moved on from it to snapshot {head} of somebody else"
        before = ours[-1].parent_snapshot_id
        empty = document.attempt.version_before <= 0 and is_first(ours[-1])
        if not empty and (before is None or table.metadata.snapshot_by_id(before) is None):
            return f"what {self._target} showed before was expired"
        return None

    def _moved(self, staged: Staged) -> str:
        if staged.target_head is not None:
            return (
                f"{self._target} has moved on to snapshot {staged.target_head} since snapshot {staged.snapshot_id} was"
                " staged, which is no plain append and would have to be computed anew"
            )
        if self._target != MAIN_BRANCH:
            return f"the branch {self._target} is gone"
        return "a statement has replaced the whole table, which cannot be staged; main shows what it showed before"


def _check_elsewhere(table: Table, document: Checkpoint) -> None:
    """Raise `NotCommittedError` if the block has written to another branch of the table."""
    for name, ref in table.metadata.refs.items():
        for snapshot in ancestors(table.metadata, ref.snapshot_id):
            if is_marked(snapshot, document.write_key, document.epoch) and not is_marked(
                snapshot, document.write_key, document.epoch - 1
            ):
                raise NotCommittedError(
                    f"snapshot {snapshot.snapshot_id} of {document.table} is this block's write, but it went into"
                    f" {name}, where nothing guards it; let statements name the table as sw.table does"
                )


def _close(staged: Staged | None, intent: Intent) -> Move:
    if staged is None:
        return Move(Status.ROLLED_BACK, f"{intent.cause}: nothing of this write is in the table or staged")
    if intent.undo:  # closed in the document first: then nobody can pick it, and dropping it is hygiene
        return Move(Status.ROLLED_BACK, f"{intent.cause}: snapshot {staged.snapshot_id}, which was staged, is dropped")
    return _pick(staged)


def _pick(staged: Staged) -> Move:
    return Move(Status.PUBLISHING, landed=landed(staged.steps[0], staged.steps))


def _leads_to(table: Table, head: int | None, picked: int) -> bool:
    """Tell whether a branch still holds what was picked; a statement that goes on may have added to it since."""
    return any(snapshot.snapshot_id == picked for snapshot in ancestors(table.metadata, head))
