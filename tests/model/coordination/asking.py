"""A process without a turn: it reads the record and requests the changes that the code's own `Acquirer` decides on."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from safewriter.coordination import order
from safewriter.coordination.acquiring import Acquirer, Times, _Watch
from safewriter.coordination.backend import Stored
from safewriter.coordination.transitions import with_token
from tests.model.coordination.landing import landed
from tests.model.coordination.rules import Fault, TurnRule
from tests.model.coordination.state import Request, Watch, Write, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safewriter.coordination.record import Record
    from tests.model.coordination.setting import Setting
    from tests.model.coordination.state import State

__all__ = ["asking", "claimed", "nonce_of"]


def nonce_of(setting: Setting, state: State, who: int) -> str:
    """Return the nonce of the lease that a process requests or holds."""
    return f"{setting.jobs[who].job}{who}.{state.procs[who].attempt}"


def asking(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Return the next steps of a process without a turn."""
    proc = state.procs[who]
    if proc.at == "poll":
        yield "looks at the record", _answered(setting, state, who, Request("read", state.record))
        if setting.slow:
            read = Request("read", state.record)
            yield "asks for the record, which is read now", state.proc(who, at="read", read=read)
            yield "asks for the record, which is read later", state.proc(who, at="read late", read=read)
    elif proc.read is not None:
        late = Request("read", state.record, age=proc.read.age)
        read = late if proc.at == "read late" else proc.read
        yield "is answered", _answered(setting, state.proc(who, read=None), who, read)
    elif proc.request is not None:
        yield from _asked(setting, state, who, proc.request)


def _asked(setting: Setting, state: State, who: int, request: Request) -> Iterator[tuple[str, State]]:
    sent = state.proc(who, request=None, at="poll")
    if not request.fits and setting.has(TurnRule.RECORD_CAS):
        yield "is refused, the record has changed", sent
        return
    nonce = nonce_of(setting, state, who)
    after = landed(setting, sent, request.record)
    if request.record.is_held_by(nonce):
        yield f"has its turn, token {request.record.token}", _begun(setting, after, who, request.age)
    else:
        yield "has changed the record", after
    if setting.may(state, Fault.LOST):
        yield "has changed the record, and the answer is lost", after.spend()
    if setting.may(state, Fault.LATE):
        yield "sees an error, the request stays in the air", sent._replace(air=(*sent.air, request)).spend()


def _begun(setting: Setting, state: State, who: int, sure: int) -> State:
    todo = tuple(write.write_key for write in state.record.unsettled) if setting.has(TurnRule.SETTLE_FIRST) else ()
    holder = state.proc(who, at="settle", sure=sure, token=state.record.token, todo=todo, renewals=setting.renewals)
    return holder if todo else claimed(setting, holder, who)


def claimed(setting: Setting, state: State, who: int) -> State:
    """Begin the process's own turn: it claims its write."""
    token = state.procs[who].token
    write = Write(nonce_of(setting, state, who), token)
    begun = state._replace(begun=max(state.begun, token), writes=(*state.writes, write))
    return begun.proc(who, at="note" if setting.has(TurnRule.NOTE_FIRST) else "gate")


def _answered(setting: Setting, state: State, who: int, read: Request) -> State:
    """Let the code's `Acquirer` decide on the record that was read."""
    state = state.proc(who, at="poll")
    proc, nonce, record = state.procs[who], nonce_of(setting, state, who), read.record
    if record.is_held_by(nonce) and not setting.has(TurnRule.CONFIRMED) and setting.has(TurnRule.NONCE_READ_BACK):
        return _begun(setting, state, who, read.age)
    acquirer = _acquirer(setting, who, nonce)
    acquirer._holder, acquirer._waiter = (_Watch(watch.seen, -watch.age) for watch in (proc.holder, proc.waiter))
    times = Times(-read.age, 0.0) if setting.has(TurnRule.ANSWER_TO_REQUEST) else Times(0.0, -read.age)
    with nullcontext() if setting.has(TurnRule.SOFT_RING) else patch.object(order, "_own_obstacle", _ring_waits):
        if setting.has(TurnRule.NONCE_READ_BACK):
            change, _ = acquirer._step(record, Stored(record, None), times)
        else:
            change, _ = acquirer._next(record, Stored(record, None), times)
    watches = {
        name: Watch(watch.value, round(-watch.since_s)) if watch.value is not None else Watch()
        for name, watch in (("holder", acquirer._holder), ("waiter", acquirer._waiter))
    }
    state = state.proc(who, **watches)
    if record.is_held_by(nonce) and (change is None or change.holder == record.holder):
        return state._replace(broken="a job waits for its own turn")
    if change is None:
        return state
    kind = "grant" if change.is_held_by(nonce) else "ask"
    return state.proc(who, at="asks", request=Request(kind, _without(setting, record, change, nonce), read.fits))


_OBSTACLE: Final = order._own_obstacle


def _ring_waits(record: Record, name: str) -> str | None:
    """Replace `_own_obstacle`: each job of a ring waits for its predecessor."""
    job = record.job(name)
    # Who lets another go first, and is asked for an obstacle of its own, stands in a ring.
    is_in_ring = order._is_soft(job) and any(waiter.job == job.predecessor for waiter in record.queue)
    return "the ring" if is_in_ring else _OBSTACLE(record, name)


def _without(setting: Setting, before: Record, change: Record, nonce: str) -> Record:
    """Return the change as the code would make it without the rules that are switched off."""
    if not setting.has(TurnRule.UNSETTLED_KEPT) and before.holder is not None:
        change = replace(change, unsettled=tuple(w for w in change.unsettled if w not in before.unsettled))
    if not setting.has(TurnRule.DEAD_WRITES_KEPT):
        change = replace(change, unsettled=tuple(w for w in change.unsettled if w in before.unsettled))
    if change.is_held_by(nonce) and not before.is_held_by(nonce):
        if not setting.has(TurnRule.TOKEN_GROWS):
            change = with_token(change, max(before.token, 1))
        if not setting.has(TurnRule.COMPLETES_LATE) and change.holder is not None:
            job, number = change.holder.job, change.completions + 1
            done = replace(change.job(job), completed=number, is_done=True)
            change = replace(change, completions=number).with_job(job, done)
    return plain(change)


class _Backend:
    """A lock service that gets no request: the model applies all changes."""

    server = ""


class _Acquirer(Acquirer):
    """The code's `Acquirer`, without the rules that are switched off."""

    rules: frozenset[TurnRule]

    def _is_dead(self, *arguments: Any) -> bool:
        return TurnRule.WHOLE_LEASE not in self.rules or super()._is_dead(*arguments)

    def _gave_up(self, *arguments: Any) -> bool:
        return TurnRule.GIVE_UP in self.rules and super()._gave_up(*arguments)


def _acquirer(setting: Setting, who: int, nonce: str) -> _Acquirer:
    backend: Any = _Backend()
    acquirer = _Acquirer(backend, setting.jobs[who], nonce)
    acquirer.rules = setting.rules
    return acquirer
