"""What must hold in every state of an Iceberg table and its document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.state import OPEN, Status
from tests.model.setting import GUARDS, STATEMENTS

if TYPE_CHECKING:
    from tests.model.iceberg.setting import IcebergSetting
    from tests.model.iceberg.table import Table
    from tests.model.state import Doc, State

__all__ = ["untrue"]


def untrue(setting: IcebergSetting, state: State) -> str | None:
    """Return the promise that a state breaks."""
    return _verdict(state) or _deleted(state) or _left(setting, state)


def _verdict(state: State) -> str | None:
    table, doc = state.table, state.doc
    shown = table.shown(table.main)
    by_itself = doc is not None and any(claim.before < 0 for claim in doc.claims)
    twice = len(shown) != len(set(shown)) or len({table.at(one).attempt for one in shown}) > 1
    # What a block writes to a table that it has created is visible until it is judged.
    if twice and not (by_itself and doc is not None and doc.status in OPEN):
        return "the batch is in the table twice"
    if doc is None:
        return None
    if doc.status is Status.COMMITTED:
        return _committed(table, doc, shown)
    if doc.status is Status.ROLLED_BACK:
        return "rolled_back, but the table holds the batch" if shown and not table.late else None
    if shown and not by_itself and set(shown) != set(_picked(table, doc)):
        return "main shows what is not picked"
    return None


def _committed(table: Table, doc: Doc, shown: tuple[int, ...]) -> str | None:
    picked = () if doc.no_change else _picked(table, doc)
    if not shown and picked:
        return None if table.taken else "committed, but the table does not hold it"
    if doc.no_change and shown:
        return "no change, but the table holds one"
    return None if set(shown) == set(picked) else "committed, but the table holds another part of it"


def _picked(table: Table, doc: Doc) -> tuple[int, ...]:
    """Return all that an attempt had staged when a snapshot of it was picked, or published."""
    picked = doc.claims[-1].picked
    if not picked:
        return ()
    newest = max(table.at(picked).holds, default=picked)
    return tuple(one for one in table.shown(newest) if table.at(one).attempt == table.at(picked).attempt)


def _deleted(state: State) -> str | None:
    table, doc = state.table, state.doc
    if any(table.at(one).deleted for one in table.shown(table.main)):
        return "a file of the table is deleted"
    if doc is not None and doc.status is Status.COMMITTED and any(table.at(one).deleted for one in _picked(table, doc)):
        return "what was committed is deleted"
    return None


def _left(setting: IcebergSetting, state: State) -> str | None:
    """What an attempt has staged is found by its marker, as long as nobody has cleaned up."""
    for attempt in range(2):
        ended = state.procs[GUARDS[attempt]].at in ("done", "dead")
        over = ended and state.procs[STATEMENTS[attempt]].at in ("done", "dead", "off")
        if attempt in state.table.strays:
            continue
        if over and state.table.refs[setting.branch(attempt)] and not state.markers[setting.marker(attempt)]:
            return "a branch is left behind, and no marker tells"
    return None
