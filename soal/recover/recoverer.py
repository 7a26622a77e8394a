"""Settle open writes by hand, by the same code as guard, supervisor and retry."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from safewriter.record.checkpoints import Checkpoints
from safewriter.settle.one_write import Action, settle_one
from safewriter.settle.recovery import Cause, Recovery
from soal.recover.overlay import Overlay

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.deadline import Clock
    from safewriter.objects import ObjectStore

__all__ = ["Recovered", "Recoverer", "marked"]

_ANNOUNCED: Final = "announced"
"""Of a write that has a marker and no document."""
_UNREAD: Final = "unread"
"""Of a write of which nothing could be read."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """The result for one write.

    `action`: settled, cleaned, unclean (its verdict stands), alive (not changed), none (nothing to do), failed or
    unreadable. `run_key` and `table` are None if neither document nor marker could be read.

    `changes` are the requests that a dry run would have made; `changes_more` of them are not shown.
    """

    write_key: str
    run_key: str | None
    table: str | None
    step: str | None
    before: str
    status: str
    action: str
    reason: str | None
    undo_refused: str | None
    checkpoint: str
    changes: tuple[str, ...] = ()
    changes_more: int = 0


def marked(store: ObjectStore) -> tuple[str, ...]:
    """Return the keys of all writes that have an attempt with a marker."""
    return tuple(dict.fromkeys(marked.write_key for marked in Checkpoints(store).marked()))


@dataclass(frozen=True, slots=True)
class Recoverer:
    """Settles writes of one checkpoint bucket. `table_store` opens a table by its URI; `until_ms`: not longer."""

    store: ObjectStore
    table_store: Callable[[str], ObjectStore]
    clock: Clock
    audit_log: bool
    until_ms: int

    def settle(self, write_key: str, *, dry_run: bool) -> Recovered | None:
        """Settle one write if it is open and its owner is dead, and clean up after it; None if there is no such write.

        Never raises, whatever the write holds or its stores answer: the others must be settled, too. `dry_run`: do the
        same on an overlay, and change nothing.
        """
        overlays: list[Overlay] = []
        rehearsal: list[str] = []

        def opened(store: ObjectStore) -> ObjectStore:
            if not dry_run:
                return store
            overlays.append(Overlay(store, lambda: datetime.fromtimestamp(self.clock() / 1000, UTC)))
            return overlays[-1]

        tables: dict[str, ObjectStore] = {}

        def table_store(uri: str) -> ObjectStore:
            if uri not in tables:
                tables[uri] = opened(self.table_store(uri))
            return tables[uri]

        checkpoints = Checkpoints(opened(self.store))
        recovery = Recovery(
            checkpoints,
            table_store,
            clock=self.clock,
            audit_log=self.audit_log,
            may_go_on=lambda: self.clock() < self.until_ms,
            rehearsal=rehearsal if dry_run else None,
        )
        looked = settle_one(checkpoints, recovery, write_key, Cause.OPERATOR, self.clock)
        document, write = looked.document, looked.document or looked.marker
        if write is None and looked.action is Action.NONE:
            return None
        without = _UNREAD if write is None else _ANNOUNCED
        return Recovered(
            write_key=write_key,
            run_key=None if write is None else write.run_key,
            table=None if write is None else write.table,
            step=None if write is None else write.step,
            before=without if looked.before is None else looked.before.status.value,
            status=without if document is None else document.status.value,
            action=looked.action.value,
            reason=looked.problem or (None if document is None else document.reason),
            undo_refused=None if document is None else document.undo_refused,
            checkpoint=checkpoints.uri(write_key),
            changes=(
                *(change for overlay in overlays for change in overlay.changes),
                *rehearsal,
            ),
            changes_more=sum(overlay.changes_more for overlay in overlays),
        )

    def forget_leases(self) -> None:
        """Remove the leases that are older than a day: their owners are dead."""
        Checkpoints(self.store).forget_leases(self.clock(), lambda: self.clock() < self.until_ms)
