"""A statement on its way through the gate, as Gate.java, ConditionalPut.java and Delta's rebase do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.requests import apply, send
from tests.model.rules import Fault, Rule
from tests.model.setting import GUARDS, attempt_of
from tests.model.state import NOTE, OURS, SCHEMA_NOTE, Entry, Request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.setting import Setting
    from tests.model.state import Proc, State

__all__ = ["cancel", "data", "note", "put", "raises", "returns", "try_to_pass"]


def data(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Delta takes a snapshot, tasks put the files."""
    attempt = attempt_of(who)
    if setting.may(state, Fault.IDLE):
        yield "changes nothing, makes no commit", returns(state.spend(), who)
    yield "puts its files", apply(state, Request("data", attempt)).proc(who, at="pass", slot=len(state.log))


def try_to_pass(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Everything that the gate looks at here is local, or cannot change any more."""
    me, attempt = state.procs[who], attempt_of(who)
    gate, rules, epoch = state.gates[attempt], setting.rules, _epoch(me)
    if gate.closed:
        if Rule.GATE_OVER in rules:
            yield "the block is over: refused", raises(state, who)
        else:
            stray = Request("log", attempt, me.slot, entry=Entry(OURS, attempt))
            yield "finds no gate", state.proc(who, at="put", request=stray)
    elif gate.shut and Rule.GATE_SHUT in rules:
        yield "gate: shut", raises(state.gate(attempt, refused=True), who)
    elif state.clocks[attempt] > 0 and Rule.GATE_CLOCK in rules:
        yield "gate: too late", raises(state.gate(attempt, refused=True), who)
    elif gate.status in ("landed", "in flight") and Rule.GATE_ONCE in rules:
        yield "gate: a second commit", raises(state.gate(attempt, refused=True), who)
    elif Rule.GATE_FENCE in rules and any(entry.epoch >= epoch for entry in state.log[me.before + 1 : me.slot]):
        yield "gate: fenced", raises(state.gate(attempt, refused=True, shut=True), who)
    elif Rule.CREATION_NOTE in rules and me.before < 0 and not gate.noted:
        text = SCHEMA_NOTE if me.slot == 0 else NOTE
        yield "gate: note first", state.proc(who, at="note", request=Request("note", attempt, epoch, note=text))
    else:
        passed = state.gate(
            attempt,
            passed=True,
            status="in flight",
            version=me.slot,
            journal=Rule.JOURNAL_FIRST in rules or gate.journal,
        )
        commit = Request("log", attempt, me.slot, entry=Entry(OURS, attempt, epoch))
        yield "gate: passes", passed.proc(who, at="put", request=commit)


def note(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """A creation competes with whoever settles it."""
    attempt = attempt_of(who)

    def won(after: State) -> State:
        return after.gate(attempt, noted=True).proc(who, at="pass")

    def lost(after: State) -> State:
        return raises(after.gate(attempt, refused=True, shut=True), who)

    yield from send(setting, state, who, won=won, lost=lost, failed=lambda after: raises(after, who))


def put(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """The one PUT that makes the write visible."""
    me, attempt, rules = state.procs[who], attempt_of(who), setting.rules
    request = me.request
    assert request is not None
    epoch = _epoch(me)

    def won(after: State) -> State:
        return returns(after.gate(attempt, status="landed", version=me.slot, journal=True), who)

    def lost(after: State) -> State:
        if Rule.GATE_BYTES not in rules:
            return won(after)
        gate = after.gates[attempt]
        after = after.gate(attempt, status="none" if gate.status == "in flight" else gate.status, journal=True)
        if Rule.GATE_SLOT in rules and after.log[me.slot].epoch >= epoch:
            return raises(after.gate(attempt, refused=True, shut=True), who)
        if me.slot == 0 or not setting.rebases:
            return raises(after, who)  # Delta rebases neither a creation nor a write that has read what changed
        return after.proc(who, at="pass", slot=len(after.log))

    def failed(after: State) -> State:
        if Rule.DOUBT_IS_NOT_NOTHING in rules:
            after = after.gate(attempt, status="unknown", shut=True)
        else:
            after = after.gate(attempt, status="none", passed=False)
        return raises(after.gate(attempt, journal=True), who)

    yield from send(setting, state, who, won=won, lost=lost, failed=failed, read_back=Rule.GATE_READ_BACK)


def _epoch(statement: Proc) -> int:
    assert statement.held is not None
    return statement.held.epoch


def cancel(state: State, who: int) -> State:
    """End a statement from outside; the block sees an error."""
    return raises(state, who)


def returns(state: State, who: int) -> State:
    """Let a statement end well."""
    return _ends(state, who, "after")


def raises(state: State, who: int) -> State:
    """Let a statement end with an error."""
    return _ends(state, who, "failed")


def _ends(state: State, who: int, then: str) -> State:
    """The statement is over; the block goes on, if it still waits for it."""
    guard = GUARDS[attempt_of(who)]
    state = state.proc(who, at="off", held=None, request=None, before=-1, slot=0)
    return state.proc(guard, at=then) if state.procs[guard].at == "wait" else state
