"""Applies a change to the record, and checks the promises about leases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.coordination.configuration import Edge, FirstRun
from safewriter.coordination.record import End

if TYPE_CHECKING:
    from safewriter.coordination.record import Record
    from tests.model.coordination.setting import Setting
    from tests.model.coordination.state import State

__all__ = ["landed"]


def landed(setting: Setting, state: State, record: Record) -> State:
    """Return the state with a new record; record the turns that it grants and completes."""
    before = state.record
    state = state.recorded(record)
    if len(record.history) > len(before.history) and record.history[-1].end is End.COMPLETED:
        state = state._replace(done=(*state.done, record.history[-1].job))
    holder = record.holder
    if holder is None or before.is_held_by(holder.nonce):
        return state
    broken = state.broken or _order_broken(setting, state, holder.job)
    if holder.token <= state.granted:
        broken = broken or "a token does not grow"
    return state._replace(granted=max(state.granted, holder.token), broken=broken)


def _order_broken(setting: Setting, state: State, name: str) -> str:
    configuration = next(one for one in setting.jobs if one.job == name)
    if configuration.predecessor is None or configuration.edge is not Edge.HARD:
        return ""
    if configuration.first_run is FirstRun.RUN and name not in state.done:
        return ""
    since = state.done[len(state.done) - state.done[::-1].index(name) :] if name in state.done else state.done
    return "" if configuration.predecessor in since else "a job has its turn before its predecessor has completed one"
