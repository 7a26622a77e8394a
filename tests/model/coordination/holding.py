"""A process with a turn: it settles, claims, notes, commits and releases the turn, and renews meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from safewriter.coordination.record import End, OpenWrite
from safewriter.coordination.transitions import end, forget_settled, open_write, renew
from safewriter.coordination.turn import _MARGIN
from tests.model.coordination.asking import claimed, nonce_of
from tests.model.coordination.landing import landed
from tests.model.coordination.rules import Fault, TurnRule
from tests.model.coordination.state import Request, Watch, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from safewriter.coordination.record import Record
    from tests.model.coordination.setting import Setting
    from tests.model.coordination.state import State

__all__ = ["HOLDS", "holding", "is_sure"]

HOLDS: Final = ("settle", "note", "gate", "sent", "release")
_RENEWS: Final = HOLDS[:-1]
_SENDS: Final = {"settle": "forget", "note": "note", "release": "release"}


def is_sure(setting: Setting, state: State, who: int) -> bool:
    """Return whether a process is sure that no other process can hold its turn."""
    if not setting.clocks or not setting.has(TurnRule.HOLDER_STOPS):
        return True
    return state.procs[who].sure < setting.lease - setting.lease / _MARGIN


def holding(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Return the next steps of a process with a turn."""
    proc, nonce = state.procs[who], nonce_of(setting, state, who)
    if proc.request is not None:
        yield from _outcome(setting, state, who, proc.request)
        if proc.request.kind not in ("renew", "answer"):
            return
    elif proc.at in _RENEWS and proc.renewals:
        yield from _send(setting, state, who, "renew")
    if proc.at == "settle" and proc.todo:
        yield f"settles {proc.todo[0]}", _settled(state, proc.todo[0]).proc(who, todo=proc.todo[1:])
    elif proc.at in _SENDS and proc.request is None:
        yield from _send(setting, state, who, _SENDS[proc.at])
    elif proc.at == "gate" and not is_sure(setting, state, who):
        yield "finds its lease ended", _lost(setting, state, who)
    elif proc.at == "gate":
        yield "sends its commit", state.written(nonce, sent=True).proc(who, at="sent")
    elif proc.at == "sent":
        yield from _sent(setting, state, who)


def _sent(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    write = state.write(nonce_of(setting, state, who))
    if write.landed:
        yield "finds its commit in the table", state.proc(who, at="release")
    elif write.fenced:
        yield "finds a fence in the table", _lost(setting, state, who)
    elif setting.may(state, Fault.UNKNOWN):
        yield "has no answer of its commit", state.proc(who, at="release", undecided=True).spend()


def _settled(state: State, nonce: str) -> State:
    """Fence a write unless its commit has landed: one step, by the table's own compare-and-swap."""
    return state if state.write(nonce).landed else state.written(nonce, fenced=True)


def _send(setting: Setting, state: State, who: int, kind: str) -> Iterator[tuple[str, State]]:
    nonce, record = nonce_of(setting, state, who), state.record
    is_zombie = not record.is_held_by(nonce)
    if kind == "note" and is_zombie and record.holder is not None and not setting.has(TurnRule.NOTE_HELD):
        is_zombie = False
    if is_zombie or (kind != "release" and not is_sure(setting, state, who)):
        yield f"finds its turn lost ({kind})", _lost(setting, state, who)
        return
    change = plain(_changed(setting, state, who, kind))
    sent = state.proc(who, request=Request(kind, change))
    yield f"sends: {kind}", sent if kind != "renew" else sent.proc(who, renewals=state.procs[who].renewals - 1)


def _changed(setting: Setting, state: State, who: int, kind: str) -> Record:
    nonce, record = nonce_of(setting, state, who), state.record
    own = OpenWrite("", nonce, 1)
    if kind == "renew":
        return renew(record)
    if kind in ("forget", "note"):
        changed = forget_settled(record, record.unsettled) if kind == "forget" else open_write(record, own)
        if not setting.has(TurnRule.EVERY_BEAT) and changed.holder is not None and record.holder is not None:
            changed = replace(changed, holder=replace(changed.holder, beat=record.holder.beat))
        return changed
    if state.procs[who].undecided:
        return end(record, End.FAILED, 0, () if setting.has(TurnRule.UNDECIDED_KEPT) else (own,))
    ended = end(record, End.COMPLETED, 0, (own,))
    if setting.has(TurnRule.COMPLETES_LATE):
        return ended
    return replace(ended, completions=record.completions, jobs=record.jobs)


def _outcome(setting: Setting, state: State, who: int, request: Request) -> Iterator[tuple[str, State]]:
    sent = state.proc(who, request=None)
    age = request.age if setting.has(TurnRule.SENT_NOT_ANSWERED) else 0
    sure = min(state.procs[who].sure, age)
    if request.kind == "answer":
        yield "has the answer (renew)", sent.proc(who, sure=sure)
        return
    if not request.fits and setting.has(TurnRule.RECORD_CAS):
        yield f"is refused, the record has changed ({request.kind})", sent
        return
    after = landed(setting, sent, request.record)
    yield f"has changed the record ({request.kind})", _next(setting, after.proc(who, sure=sure), who, request.kind)
    if setting.slow and request.kind == "renew":
        answer = request._replace(kind="answer", record=after.record)
        yield "has changed the record, the answer is under way (renew)", after.proc(who, request=answer)
    if setting.may(state, Fault.LOST):
        yield (
            f"has changed the record, and the answer is lost ({request.kind})",
            _unanswered(setting, after.spend(), who, request.kind),
        )
    if setting.may(state, Fault.LATE):
        late = sent._replace(air=(*sent.air, request)).spend()
        yield f"sees an error, the request stays in the air ({request.kind})", _failed(setting, late, who, request.kind)


def _next(setting: Setting, state: State, who: int, kind: str) -> State:
    if kind == "forget":
        return claimed(setting, state, who)
    if kind == "note":
        return state.proc(who, at="gate")
    return state if kind == "renew" else _lost(setting, state, who)


def _unanswered(setting: Setting, state: State, who: int, kind: str) -> State:
    """Handle a lost response: the store retries, is refused, and reads the record back."""
    if kind != "release":
        return _failed(setting, state, who, kind)
    if not setting.has(TurnRule.RELEASE_READ_BACK) and not state.procs[who].undecided:
        return state._replace(broken="a turn that was completed is told to be lost")
    return _lost(setting, state, who)


def _failed(setting: Setting, state: State, who: int, kind: str) -> State:
    if kind == "note":  # no commit was sent: roll the write back, and release the turn
        return state.written(nonce_of(setting, state, who), fenced=True).proc(who, at="release", undecided=True)
    return _lost(setting, state, who) if kind == "release" else state


def _lost(setting: Setting, state: State, who: int) -> State:
    """End the turn; the process's next attempt follows, if there is one."""
    attempt = state.procs[who].attempt + 1
    over = attempt == setting.attempts
    return state.proc(
        who,
        at="over" if over else "poll",
        attempt=attempt,
        request=None,
        holder=Watch(),
        waiter=Watch(),
        sure=0,
        token=0,
        todo=(),
        renewals=0,
        undecided=False,
    )
