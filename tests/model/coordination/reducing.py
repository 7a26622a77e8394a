"""Maps states that no process can distinguish to one state, so that the search ends."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from safewriter.coordination.record import Record
from tests.model.coordination.rules import TurnRule
from tests.model.coordination.state import Watch, plain

if TYPE_CHECKING:
    from tests.model.coordination.setting import Setting
    from tests.model.coordination.state import Proc, Request, State

__all__ = ["reduced"]

_WHATEVER = plain(Record("lock"))


def reduced(setting: Setting, state: State) -> State:
    """Return the state that represents all states equivalent to this one."""
    if setting.has(TurnRule.RECORD_CAS):
        procs = tuple(proc._replace(request=_doomed(proc.request)) for proc in state.procs)
        state = state._replace(procs=procs, air=tuple(one for one in state.air if one.fits))
    procs = tuple(proc if proc.read else _without_old_watches(state.record, proc) for proc in state.procs)
    return _with_small_tickets(state._replace(procs=procs))


def _doomed(request: Request | None) -> Request | None:
    """Drop what has no effect: the content of requests that no longer fit, and ages that no lease counts from."""
    if request is None:
        return None
    if request.kind == "answer":
        return request._replace(record=_WHATEVER)
    if not request.fits:
        return request._replace(record=_WHATEVER, age=0)
    return request._replace(age=0) if request.kind in ("ask", "release") else request


def _without_old_watches(record: Record, proc: Proc) -> Proc:
    """Reset the watches of what has changed since: the next read starts them anew."""
    now = record.holder
    holder = proc.holder if now and proc.holder.seen == (now.nonce, now.beat) else Watch()
    seen = {(waiter.nonce, waiter.ticket, record.token) for waiter in record.queue}
    return proc._replace(holder=holder, waiter=proc.waiter if proc.waiter.seen in seen else Watch())


def _with_small_tickets(state: State) -> State:
    """Renumber the tickets: only their order counts, and a waiter can draw new ones for ever."""
    records = [state.record, *(one.record for proc in state.procs for one in (proc.request, proc.read) if one)]
    records += [one.record for one in state.air]
    tickets = {waiter.ticket for record in records for waiter in record.queue} | {one.tickets for one in records}
    seen = {proc.waiter.seen[1] for proc in state.procs if proc.waiter.seen}
    ranks = {ticket: rank for rank, ticket in enumerate(sorted(tickets | seen | {0}))}
    if all(ticket == rank for ticket, rank in ranks.items()):
        return state

    def small(record: Record) -> Record:
        queue = tuple(replace(waiter, ticket=ranks[waiter.ticket]) for waiter in record.queue)
        return replace(record, queue=queue, tickets=ranks[record.tickets])

    def request(one: Request | None) -> Request | None:
        return None if one is None else one._replace(record=small(one.record))

    def watch(one: Watch) -> Watch:
        if one.seen is None:
            return one
        nonce, ticket, token = one.seen
        return Watch((nonce, ranks[ticket], token), one.age)

    procs = tuple(
        proc._replace(request=request(proc.request), read=request(proc.read), waiter=watch(proc.waiter))
        for proc in state.procs
    )
    air = tuple(one._replace(record=small(one.record)) for one in state.air)
    return state._replace(record=small(state.record), procs=procs, air=air)
