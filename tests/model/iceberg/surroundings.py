"""The actions of others and of time on an Iceberg table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.iceberg.table import Snapshot
from tests.model.rules import Fault
from tests.model.setting import STATEMENTS
from tests.model.surroundings import is_forgotten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.setting import Setting
    from tests.model.state import State

__all__ = ["others"]


def others(setting: Setting, state: State) -> Iterator[tuple[str, State]]:
    """Return the possible events for the table and its document."""
    table = state.table
    if not table.there:
        yield "the table is registered again", state._replace(table=table._replace(there=True), gap=table.age > 0)
        return
    if setting.may(state, Fault.GAP):
        yield "the table is dropped", state.spend()._replace(table=table._replace(there=False), gap=True)
    if setting.may(state, Fault.FORGET) and is_forgotten(setting, state):
        yield "the document is deleted", state.spend()._replace(doc=None)
    if state.foreign:
        snapshots = (*table.snapshots, Snapshot(parent=table.main))
        after = table._replace(snapshots=snapshots, main=len(snapshots))
        yield "somebody else commits", state._replace(table=after, foreign=state.foreign - 1)
    if table.marks and setting.may(state, Fault.UNMARK):
        after = table._replace(marks=frozenset())
        yield "somebody unsets the marks", state.spend()._replace(table=after)
    yield from _history(setting, state)
    if Fault.AGE in setting.kinds:
        yield from _days(state)


def _history(setting: Setting, state: State) -> Iterator[tuple[str, State]]:
    table = state.table
    if setting.may(state, Fault.SET_BACK):
        for number, one in enumerate(table.snapshots, 1):
            if number != table.main and not one.gone:
                after = table._replace(main=number)
                after = after._replace(taken=not after.shown() and bool(table.shown() or table.taken))
                yield f"somebody sets main to snapshot {number}", state.spend()._replace(table=after)
    if setting.may(state, Fault.EXPIRE):
        kept = tuple(one._replace(gone=number != table.main) for number, one in enumerate(table.snapshots, 1))
        if kept != table.snapshots:
            after = table._replace(snapshots=kept)
            yield "all but main's newest snapshot are expired", state.spend()._replace(table=after)


def _days(state: State) -> Iterator[tuple[str, State]]:
    """Let days go by; a publication that has begun lands within one day, or never."""
    table = state.table
    publishes = state.procs[STATEMENTS[0]].at == "put publication" or any(
        request.attempt == 0 and request.commit is not None and request.commit.mark is not None for request in state.air
    )
    if not table.age and state.faults:
        yield "six days go by since attempt 1 began", state.spend()._replace(table=table._replace(age=1), gap=True)
    if table.age == 1 and not publishes:
        yield "another day goes by", state._replace(table=table._replace(age=2))
    if table.age > 1:
        marks, fences = frozenset(mark for mark in table.marks if mark[0]), table.fences - {0}
        if marks != table.marks:
            yield "its mark is removed", state._replace(table=table._replace(marks=marks))
        if fences != table.fences:
            yield "its fence expires", state._replace(table=table._replace(fences=fences))
