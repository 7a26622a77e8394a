"""From open writes to their verdicts, by hand: the same settling that guard, supervisor and retry do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from safewriter.checkpoint import Checkpoints
from safewriter.looking import close_unclaimed, look_after
from safewriter.recovery import Cause, Recovery
from safewriter.tables.rehearsal import Rehearsal
from scripts.soal.overlay import Overlay

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.deadline import Clock
    from safewriter.looking import Closed
    from safewriter.marker import Marker
    from safewriter.objects import ObjectStore
    from safewriter.state import Checkpoint

__all__ = ["Recovered", "Recoverer", "marked"]

_ANNOUNCED: Final = "announced"
"""Of a write that has a marker and no document."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of one write.

    `action`: settled, cleaned, unclean (its verdict stands), alive (left alone), none (nothing to do) or failed.

    `changes` are the requests that a dry run would have made; `changes_more` of them are not shown.
    """

    write_key: str
    run_key: str
    table: str
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
        """Settle one write if it is open and its owner is dead, and clean up after it; None if nothing tells of it.

        `dry_run`: do the same on top of what is there, and change nothing.
        """
        overlays: list[Overlay] = []
        rehearsal = Rehearsal() if dry_run else None

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
            rehearsal=rehearsal,
        )
        before = checkpoints.read(write_key)
        write: Checkpoint | Marker
        if before is None:
            closed = self._close(checkpoints, recovery, write_key)
            if closed is None or closed.marker is None:
                return None
            action, problem, document = closed.action, closed.problem, closed.document
            write = closed.marker
        else:
            action, problem = look_after(checkpoints, recovery, before, Cause.OPERATOR)
            write = document = (checkpoints.read(write_key) or before).document
        return Recovered(
            write_key=write_key,
            run_key=write.run_key,
            table=write.table,
            step=write.step,
            before=_ANNOUNCED if before is None else before.document.status.value,
            status=_ANNOUNCED if document is None else document.status.value,
            action=action.value,
            reason=problem or (None if document is None else document.reason),
            undo_refused=None if document is None else document.undo_refused,
            checkpoint=checkpoints.uri(write_key),
            changes=(
                *(change for overlay in overlays for change in overlay.changes),
                *(rehearsal.changes if rehearsal is not None else ()),
            ),
            changes_more=sum(overlay.changes_more for overlay in overlays),
        )

    def _close(self, checkpoints: Checkpoints, recovery: Recovery, write_key: str) -> Closed | None:
        marks = tuple(checkpoints.markers_of(write_key))
        return close_unclaimed(checkpoints, recovery, marks, Cause.OPERATOR, self.clock) if marks else None

    def forget_leases(self) -> None:
        """Remove the leases that are older than a day: whoever has renewed them is no more."""
        Checkpoints(self.store).forget_leases(self.clock(), lambda: self.clock() < self.until_ms)
