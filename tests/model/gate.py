"""A statement on its way through the gate, modelled on Gate.java, ConditionalPut.java and Delta's rebase.

The gate's decisions are in `passing.py`, which a test compares with the code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.record.document import CommitPoint
from tests.model import passing
from tests.model.passing import Block, Commit, Machine, Statement
from tests.model.requests import apply, send
from tests.model.rules import Fault, Rule
from tests.model.setting import GUARDS, STATEMENTS, attempt_of
from tests.model.state import NOTE, OURS, SCHEMA_NOTE, STRAY, TRANSACTION, Entry, Request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.setting import Setting
    from tests.model.state import Gate, Proc, State

__all__ = ["cancel", "data", "ends", "note", "put", "raises", "returns", "stranger", "try_to_pass"]

_WHY: Final = {
    "over": "the block is over",
    "shut": "shut",
    "late": "too late",
    "second": "a second commit",
    "thread": "another thread",
    "undo": "no undo could take it back",
    "landed": "the table holds the write",
    "gap": "a version is gone",
    "fenced": "fenced",
}


def data(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Take Delta's snapshot; the tasks put the files."""
    attempt = attempt_of(who)
    if setting.may(state, Fault.IDLE):
        yield "makes no commit", returns(state.spend(), who)
    if any(entry.more == TRANSACTION for entry in state.log):
        yield "Delta skips it: the table has its transaction", returns(state, who)
        return
    yield "puts its files", apply(state, Request("data", attempt)).proc(who, at="pass", slot=len(state.log))


def try_to_pass(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Check a commit in the gate, in one step: all that the gate reads here is local or immutable."""
    me, attempt, rules = state.procs[who], attempt_of(who), setting.rules
    gate, epoch, block = state.gates[attempt], _epoch(me), _block(setting, me, attempt)
    commit = Commit(me.slot, prefixes=frozenset({attempt}), more=bool(setting.more))
    statement = Statement(attempt, attempt)
    found = passing.find(rules, _machine(gate, block), 0, statement, commit)
    if found.code:
        yield f"{_WHY[found.code]}: refused", raises(state.gated(attempt, passing.refused(gate, found.code)), who)
        return
    if found.block is None:
        stray = Request("log", attempt, me.slot, entry=Entry(OURS, attempt, more=setting.more))
        yield "finds no gate", state.proc(who, at="put", request=stray)
        return
    between = [entry.epoch for entry in state.log[me.before + 1 : me.slot]]
    code = passing.check(rules, gate, block, commit, late=state.clocks[attempt] > 0)
    if state.gap and between and not code:  # the lost version may be one of these or not
        code_of_gap = passing.look(rules, block, [None])
        yield f"gate: {_WHY[code_of_gap]}", raises(state.gated(attempt, passing.refused(gate, code_of_gap)), who)
    code = code or _landed_before(setting, state, me) or passing.look(rules, block, between)
    if code:
        yield f"gate: {_WHY[code]}", raises(state.gated(attempt, passing.refused(gate, code)), who)
    elif passing.needs_note(rules, gate, block):
        text = SCHEMA_NOTE if me.slot == 0 else NOTE
        yield "gate: note first", state.proc(who, at="note", request=Request("note", attempt, epoch, note=text))
    else:
        ours = Request("log", attempt, me.slot, entry=Entry(OURS, attempt, epoch, more=setting.more))
        passed = state.gated(attempt, passing.sent(rules, gate, me.slot))
        yield "gate: passes", passed.proc(who, at="put", request=ours)


def _landed_before(setting: Setting, state: State, statement: Proc) -> str:
    """Return "landed" if the table already held the write before its document's first claim, or holds undone rows of
    it again. The code looks for the latter in the claim, and in the gate for those that come later.
    """
    assert statement.held is not None
    earlier = any(slot <= statement.held.claims[0].before for slot in state.live())
    again = state.restored() and Rule.UNDONE_AGAIN in setting.rules
    return "landed" if again or (earlier and Rule.GATE_LANDED in setting.rules) else ""


def stranger(setting: Setting, state: State, who: int) -> State:
    """Let another thread of the block's process, with a session of its own, write rows to the table."""
    attempt = attempt_of(who)
    gate = state.gates[attempt]
    block = _block(setting, state.procs[STATEMENTS[attempt]], attempt)
    commit = Commit(len(state.log))
    found = passing.find(setting.rules, _machine(gate, block), 0, Statement("another", "another"), commit)
    if found.code:
        return state.gated(attempt, passing.refused(gate, found.code))
    return state._replace(log=(*state.log, Entry(STRAY, attempt)))


def _block(setting: Setting, statement: Proc, attempt: int) -> Block:
    """Return the block of an attempt, on the one thread and session of its process."""
    before, undoable = statement.before, setting.commit_point is CommitPoint.SUCCESS
    return Block(0, attempt, attempt, attempt, _epoch(statement), claimed_at=before, undoable=undoable)


def _machine(gate: Gate, block: Block) -> Machine:
    machine = passing.opened(Machine(), block)
    return passing.closed(machine, block, frozenset()) if gate.closed else machine


def note(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Put the note, for which a creation competes with its settlers."""
    attempt = attempt_of(who)

    def won(after: State) -> State:
        return after.gate(attempt, noted=True).proc(who, at="pass")

    def lost(after: State) -> State:
        return raises(after.gated(attempt, passing.refused(after.gates[attempt], "fenced")), who)

    yield from send(setting, state, who, won=won, lost=lost, failed=lambda after: raises(after, who))


def put(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Send the one PUT that makes the write visible."""
    me, attempt, rules = state.procs[who], attempt_of(who), setting.rules
    request = me.request
    assert request is not None
    block = _block(setting, me, attempt)

    def won(after: State) -> State:
        return returns(after.gated(attempt, passing.landed(after.gates[attempt], me.slot)), who)

    def lost(after: State) -> State:
        if Rule.GATE_BYTES not in rules:
            return won(after)
        gate = passing.lost(after.gates[attempt])
        if code := passing.fence(rules, block, after.log[me.slot].epoch):
            return raises(after.gated(attempt, passing.refused(gate, code)), who)
        after = after.gated(attempt, gate)
        if me.slot == 0 or not setting.rebases:
            return raises(after, who)  # Delta rebases neither a creation nor a write that read what changed
        return after.proc(who, at="pass", slot=len(after.log))

    def failed(after: State) -> State:
        return raises(after.gated(attempt, passing.unknown(rules, after.gates[attempt])), who)

    yield from send(setting, state, who, won=won, lost=lost, failed=failed, read_back=Rule.GATE_READ_BACK)


def _epoch(statement: Proc) -> int:
    assert statement.held is not None
    return statement.held.epoch


def cancel(state: State, who: int) -> State:
    """End a statement from outside; the block sees an error."""
    return raises(state, who)


def returns(state: State, who: int) -> State:
    """Let a statement end without an error."""
    return ends(state, who, "after")


def raises(state: State, who: int) -> State:
    """Let a statement end with an error."""
    return ends(state, who, "failed")


def ends(state: State, who: int, then: str) -> State:
    """End a statement; a block that still waits for it goes on at `then`."""
    guard = GUARDS[attempt_of(who)]
    state = state.proc(who, at="off", held=None, request=None, before=-1, slot=0)
    return state.proc(guard, at=then) if state.procs[guard].at == "wait" else state
