"""An Iceberg table as a settler sees it: what is staged is published or dropped. PROTOCOL.md has the steps I2 to I5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.errors import NotCommittedError
from safewriter.objects.store import StoreError
from safewriter.state import Status
from safewriter.tables.iceberg.leftovers import Left, remove_left
from safewriter.tables.iceberg.publishing import drop_branch, fast_forward, publish_again
from safewriter.tables.iceberg.staging import Staged, ancestors, branch_of, head_of, landed, published
from safewriter.tables.table import NO_CHANGE, Move

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.table import Table

    from safewriter.state import AttemptRecord, Checkpoint
    from safewriter.tables.iceberg.catalog import OneTable
    from safewriter.tables.session import Seen
    from safewriter.tables.table import Intent

__all__ = ["IcebergTable"]

_TRIES_MAX: Final = 50


class IcebergTable:
    """One table of a catalog, and one write to it."""

    def __init__(self, one: OneTable, write_key: str, *, may_go_on: Callable[[], bool] = lambda: True) -> None:
        self._one = one
        self._write_key = write_key
        self._may_go_on = may_go_on

    def next_move(self, document: Checkpoint, intent: Intent) -> Move:
        """Pick what is staged, publish what is picked, or close the write; everything from one look at the metadata."""
        if document.status is Status.PUBLISHING or document.attempt.commit_version is not None:
            return self._publish(document, document.attempt.commit_version, intent)
        table = self._load(document)
        done = published(table.metadata, document)
        if done is not None:
            reason = f"{intent.cause} after it was published"
            past = "it went past its branch straight into main, where a staged write cannot be undone"
            return Move(Status.COMMITTED, reason, landed(done), undo_refused=past if intent.undo else None)
        staged = _staged(table, document.attempt)
        if staged is None:
            return Move(Status.ROLLED_BACK, f"{intent.cause}: nothing of this write is in the table or staged")
        if intent.undo:  # closed in the document first: then nobody can pick it, and dropping it is hygiene
            return Move(
                Status.ROLLED_BACK, f"{intent.cause}: snapshot {staged.snapshot_id}, which was staged, is dropped"
            )
        return _pick(staged)

    def confirm(self, document: Checkpoint, seen: Seen) -> Move:  # noqa: ARG002 - the table tells what is staged
        """Return publishing with the staged snapshot; or committed, if the block has changed nothing at all."""
        table = self._load(document)
        staged = _staged(table, document.attempt)
        if staged is not None:
            return _pick(staged)
        done = published(table.metadata, document)
        if done is not None:
            raise NotCommittedError(
                f"snapshot {done.snapshot_id} of {document.table} is this block's write, but it went past its branch"
                " into main; write the guarded table by its own name, with the block's own session"
            )
        return Move(Status.COMMITTED, NO_CHANGE)

    def remove_leftovers(self, attempts: tuple[AttemptRecord, ...]) -> int:
        """Drop and delete what the attempts have staged and nobody has published."""
        return sum(remove_left(self._one, Left.of(self._write_key, attempt), self._may_go_on) for attempt in attempts)

    def _load(self, document: Checkpoint) -> Table:
        return self._one.load(document.attempt.table_id)

    def _publish(self, document: Checkpoint, picked: int | None, intent: Intent) -> Move:
        """Publish the picked snapshot: whoever reads that it was picked does, also one that would have dropped it."""
        branch, base = branch_of(document.attempt), document.attempt.version_before
        for _ in range(_TRIES_MAX):
            if not self._may_go_on():
                raise StoreError(f"{self._one.name}: out of time while publishing snapshot {picked}")
            table = self._load(document)
            done = published(table.metadata, document)
            if done is not None:
                return Move(Status.COMMITTED, f"{intent.cause}: snapshot {done.snapshot_id} is published", landed(done))
            head = head_of(table.metadata, branch)
            if picked is None or not _leads_to(table, head, picked):
                if head is not None and not drop_branch(self._one, table, branch, base):
                    continue
                reason = f"{intent.cause}: the staged snapshot {picked} is gone (expired or dropped)"
                return Move(Status.ROLLED_BACK, reason)
            staged = Staged(table.metadata, picked, base)
            if staged.is_fast_forward:
                fast_forward(self._one, table, branch, staged)
            elif staged.is_append and staged.main is not None:
                publish_again(self._one, table, branch, staged, document)
            elif drop_branch(self._one, table, branch, base):
                # Dropped before the document says so: a publishing that is still on its way finds its branch gone.
                return Move(Status.ROLLED_BACK, f"{intent.cause}: conflict, {_moved(staged)}")
        raise StoreError(f"{self._one.name}: snapshot {picked} could not be published in {_TRIES_MAX} tries")


def _staged(table: Table, attempt: AttemptRecord) -> Staged | None:
    """Return what stands on the attempt's branch, None if it has added nothing to it."""
    head = head_of(table.metadata, branch_of(attempt))
    staged = None if head is None else Staged(table.metadata, head, attempt.version_before)
    return staged if staged is not None and staged.steps else None


def _pick(staged: Staged) -> Move:
    return Move(Status.PUBLISHING, landed=landed(staged.steps[0], staged.steps))


def _leads_to(table: Table, head: int | None, picked: int) -> bool:
    """Tell whether a branch still holds what was picked; a statement that goes on may have added to it since."""
    return any(snapshot.snapshot_id == picked for snapshot in ancestors(table.metadata, head))


def _moved(staged: Staged) -> str:
    if staged.main is None:
        return "a statement has replaced the whole table, which cannot be staged; main shows what it showed before"
    return (
        f"main has moved on to snapshot {staged.main} since snapshot {staged.snapshot_id} was staged, which is no plain"
        " append and would have to be computed anew"
    )
