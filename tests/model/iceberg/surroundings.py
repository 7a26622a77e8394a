"""What others do to an Iceberg table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.iceberg.table import FOREIGN, MAIN, Snapshot
from tests.model.rules import Fault
from tests.model.state import changed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.iceberg.table import Table
    from tests.model.setting import Setting
    from tests.model.state import State

__all__ = ["others"]


def others(setting: Setting, state: State) -> Iterator[tuple[str, State]]:
    """Return what others may do to the table now."""
    table = state.table
    if table.dropped:
        yield "the table is registered again", state._replace(table=table._replace(there=True, dropped=False))
        return
    if setting.may(state, Fault.GAP) and table.there:
        dropped = table._replace(there=False, dropped=True)
        yield "the table is dropped", state.spend()._replace(table=dropped, gap=True)
    if state.foreign and table.there:
        snapshots = (*table.snapshots, Snapshot(FOREIGN, parent=table.main))
        after = table._replace(snapshots=snapshots, refs=changed(table.refs, MAIN, len(snapshots)))
        yield "somebody else commits", state._replace(table=after, foreign=state.foreign - 1)
    if setting.may(state, Fault.SET_BACK) and len(table.line(table.main)) > 1:
        yield "somebody sets main back", state.spend()._replace(table=_set_back(table))
    if setting.may(state, Fault.EXPIRE):
        for branch in range(MAIN):
            if table.refs[branch]:
                dropped = table._replace(refs=changed(table.refs, branch, 0))
                yield f"retention takes branch {branch + 1}", state.spend()._replace(table=_expired(dropped, 99))
    if setting.may(state, Fault.AGE):
        after = _expired(table, 1)
        if after != table:
            yield "all but the newest snapshots are expired", state.spend()._replace(table=after, gap=True)


def _set_back(table: Table) -> Table:
    parent = table.at(table.main).parent
    after = table._replace(refs=changed(table.refs, MAIN, parent))
    return after._replace(taken=table.taken or set(table.shown(table.main)) != set(table.shown(parent)))


def _expired(table: Table, kept: int) -> Table:
    """Expire what is no reference's snapshot and none of its nearest ancestors, `kept` of them with itself."""
    used = {one for ref in table.refs for one in table.line(ref)[:kept]}
    return table._replace(
        snapshots=tuple(
            one if number in used else one._replace(gone=True) for number, one in enumerate(table.snapshots, 1)
        )
    )
