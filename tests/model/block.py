"""A block from its statement to its end, and its watchdog, modelled on `safewriter/block/ending.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.record.document import Status
from safewriter.settle.recovery import Cause
from tests.model import recovery
from tests.model.gate import cancel, stranger
from tests.model.requests import send
from tests.model.rules import Fault, Rule
from tests.model.setting import GUARDS, STATEMENTS, WATCHDOG, attempt_of
from tests.model.state import Request, Settling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.setting import Setting
    from tests.model.state import State

__all__ = [
    "after",
    "after_deadline",
    "answers",
    "ended",
    "failed",
    "look",
    "put_success",
    "success",
    "tidy",
    "unanswered",
    "wait",
    "watch",
]

_IN_BLOCK: Final = (
    *("wait", "after", "success", "failed", "unanswered", "put success", "look"),
    *("announce", "confirm"),  # Iceberg's
)


def wait(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Wait for the statement; after an interrupt, or with a thread, the block goes on without it."""
    if setting.may(state, Fault.INTERRUPT):
        yield "the block is interrupted, its statement goes on", state.spend().proc(who, at="failed")
    if setting.may(state, Fault.THREAD):
        yield "goes on, its statement runs in a thread", state.spend().proc(who, at="success")
    if setting.may(state, Fault.STRANGER):
        yield "another thread writes rows to the table", stranger(setting, state.spend(), who)


def after(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Go on after the statement has returned."""
    yield "the write returns", state.proc(who, at="success")
    if setting.may(state, Fault.EXCEPTION):
        yield "the block raises", state.spend().proc(who, at="failed")
    if setting.may(state, Fault.SECOND):
        yield "a second statement", _again(state, who)


def _again(state: State, who: int) -> State:
    statement = STATEMENTS[attempt_of(who)]
    me = state.procs[who]
    return state.spend().proc(who, at="wait").proc(statement, at="data", before=me.before, held=me.held)


# -- success() ---------------------------------------------------------------------------------------------------------


def success(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Shut the gate and read the table."""
    attempt = attempt_of(who)
    if attempt == 0 and state.procs[WATCHDOG].at not in ("idle", "off"):
        yield from after_deadline(state, who, "success")
        return
    held, gate = state.procs[who].held, state.gates[attempt]
    assert held is not None
    if Rule.SUCCESS_SHUTS in setting.rules:
        state = state.gate(attempt, shut=True)
    whole = not gate.refused or Rule.SUCCESS_WHOLE not in setting.rules
    if gate.status in ("in flight", "unknown"):
        yield "success(): whether the commit has landed is not known", state.proc(who, at="unanswered")
    elif gate.status == "landed":
        entry = state.log[gate.version]
        believed = Rule.SUCCESS_READS not in setting.rules or (entry.attempt, entry.epoch) == (attempt, held.epoch)
        if whole and believed:
            yield f"success(): reads version {gate.version}", _to_commit(state, who, cleaned=True)
        else:
            yield "success(): the table does not hold the whole write", state.proc(who, at="failed")
    else:
        if whole and not gate.passed and Fault.IDLE in setting.kinds:
            yield "success(no_change=True)", _to_commit(state, who, no_change=True)
        if Rule.SUCCESS_WITNESS in setting.rules or not whole or gate.passed:
            yield "success(): no commit of the block", state.proc(who, at="failed")
        else:
            yield "success(): no commit, so nothing has changed", _to_commit(state, who)


def _to_commit(state: State, who: int, *, no_change: bool = False, cleaned: bool = False) -> State:
    """Prepare the write of committed to the document. `cleaned`: all Spark jobs of the block succeeded."""
    held = state.procs[who].held
    assert held is not None
    claims = (*held.claims[:-1], held.claims[-1]._replace(cleaned=cleaned))
    doc = held._replace(status=Status.COMMITTED, claims=claims, named=not no_change, no_change=no_change)
    return state.proc(who, at="put success", request=Request("document", attempt_of(who), held.etag, doc=doc))


def put_success(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Write committed to the document."""
    yield from send(
        setting,
        state,
        who,
        won=lambda won: answers(won, who, "success", "tidy"),
        lost=lambda lost: lost.proc(who, at="look"),
        failed=lambda doubt: doubt.proc(who, at="unanswered"),
    )


def look(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Answer by the document, which another process has changed."""
    attempt, doc = attempt_of(who), state.doc
    assert doc is not None
    if doc.status is Status.COMMITTED and doc.owner == attempt:
        yield "success(): reads the document: committed", answers(state, who, "success", "tidy")
    else:
        yield f"success(): reads the document: {doc.status.value}", state.proc(who, at="failed")


def answers(state: State, who: int, answer: str, at: str) -> State:
    """End the block with an answer."""
    return state.gate(attempt_of(who), shut=True, closed=True).proc(who, at=at, answer=answer, settling=None)


def tidy(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Clean up after success: the block's own marker, then files of earlier attempts."""
    attempt = attempt_of(who)
    clean = all(claim.cleaned for claim in state.doc.claims) if state.doc is not None else True
    mine = state.procs[who].settling is None
    own = state.doc.claims[-1] if state.doc is not None else None
    done = state.marker(setting.marker(attempt), there=False) if mine and own is not None and own.cleaned else state
    if clean or not mine:
        yield "tidies up", done.proc(who, at="done", settling=None, held=None, before=-1)
    else:
        job = Settling(Cause.EXCEPTION, 0, nothing_sent=False, quiet=attempt, then="tidy", failed="tidy")
        yield "tidies up", done.proc(who, at="S6", settling=job)


# -- a block that has failed -------------------------------------------------------------------------------------------


def unanswered(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Settle by the table: success() had no response."""
    if attempt_of(who) == 0 and state.procs[WATCHDOG].at not in ("idle", "off"):
        yield from after_deadline(state, who, "failed")
        return
    yield from _halted(state, who, Cause.UNANSWERED, then="ended", failed="unsettled")


def failed(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Shut, cancel, wait, settle; or wait for the watchdog if it has begun."""
    attempt = attempt_of(who)
    if attempt == 0 and state.procs[WATCHDOG].at not in ("idle", "off"):
        yield from after_deadline(state, who, "failed")
        return
    if state.gates[attempt].refused == "landed":
        yield "the table holds the write already", _to_commit(state, who)
        return
    over = state.procs[STATEMENTS[attempt]].at == "off"
    if setting.may(state, Fault.AGAIN) and over:
        yield "the block catches the error, and runs its statement again", _again(state, who)
    if setting.may(state, Fault.SWALLOW) and over:
        yield "the block swallows the error", state.spend().proc(who, at="success")
    yield from _halted(state, who, Cause.EXCEPTION, then="ended", failed="unsettled")


def _halted(state: State, who: int, cause: Cause, *, then: str, failed: str) -> Iterator[tuple[str, State]]:
    """Stop the block's work as far as possible, and begin to settle with what is known of it."""
    attempt = attempt_of(who)
    state = state.gate(attempt, shut=True)
    held, gate = state.procs[GUARDS[attempt]].held, state.gates[attempt]
    assert held is not None
    statement = state.procs[STATEMENTS[attempt]].at
    answered = gate.status in ("none", "landed")
    lost = bool(gate.refused)
    job = Settling(cause, held.epoch, nothing_sent=not gate.passed, quiet=-1, then=then, failed=failed, lost=lost)
    if statement == "data":
        cancelled = cancel(state, STATEMENTS[attempt])
        yield "cancels its tasks", recovery.begin(cancelled, who, job._replace(quiet=attempt if answered else -1))
        yield "waits for its tasks, in vain", recovery.begin(state, who, job)
    else:
        yield "settles", recovery.begin(state, who, job._replace(quiet=attempt if answered else -1))


def ended(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """End a settled block. If another process settled it, the guard still deletes its own files."""
    attempt, job = attempt_of(who), state.procs[who].settling
    assert job is not None
    if not job.by_me and job.quiet >= 0 and Rule.COMES_BACK in setting.rules:
        yield "cleans up after itself", state.proc(who, at="S6", settling=job._replace(by_me=True))
        return
    left = (
        state.files[attempt] in ("there", "stray")
        and not state.refers(attempt)
        and not state.markers[setting.marker(attempt)]
    )
    if job.quiet >= 0 and left and not state.gap:
        state = state._replace(broken="a writer that ended by itself leaves files that nobody will look for")
    yield "answers: failed", answers(state, who, "failure", "done").proc(who, held=None, before=-1)


def after_deadline(state: State, who: int, step: str) -> Iterator[tuple[str, State]]:
    """Answer with the watchdog's verdict."""
    if state.procs[WATCHDOG].at != "done":
        return
    doc = state.doc
    committed = doc is not None and doc.status is Status.COMMITTED and doc.owner == attempt_of(who)
    answer = "success" if committed and step == "success" else "failure"
    yield f"answers after its watchdog: {answer}", answers(state, who, answer, "done").proc(who, held=None, before=-1)


# -- the watchdog ------------------------------------------------------------------------------------------------------


def watch(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """One lead time before the deadline: shut, cancel, wait, settle."""
    if state.clocks[0] > 0 and state.procs[GUARDS[0]].at in _IN_BLOCK:
        yield from _halted(state, who, Cause.DEADLINE, then="done", failed="exit")
