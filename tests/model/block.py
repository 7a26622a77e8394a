"""A block from its statement to its end, and its watchdog: as `safewriter/writer.py` and its Delta adapter do it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.record.document import Status
from safewriter.settle.recovery import Cause
from tests.model import recovery
from tests.model.gate import cancel
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
    """The statement runs; only an interrupt, or a thread, lets the block go on without it."""
    if setting.may(state, Fault.INTERRUPT):
        yield "the block is interrupted, its statement goes on", state.spend().proc(who, at="failed")
    if setting.may(state, Fault.THREAD):
        yield "goes on, its statement runs in a thread", state.spend().proc(who, at="success")


def after(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """The statement has returned."""
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
    """Shut the gate and look."""
    attempt = attempt_of(who)
    if attempt == 0 and state.procs[WATCHDOG].at not in ("idle", "off"):
        yield from after_deadline(state, who, "success")
        return
    held, gate = state.procs[who].held, state.gates[attempt]
    assert held is not None
    if Rule.SUCCESS_SHUTS in setting.rules:
        state = state.gate(attempt, shut=True)
    if gate.status == "landed":
        entry = state.log[gate.version]
        believed = Rule.SUCCESS_READS not in setting.rules or (entry.attempt, entry.epoch) == (attempt, held.epoch)
        no_change = False
    else:
        settled = any(entry.epoch >= held.epoch for entry in state.log[held.before + 1 :])
        quiet = not gate.passed and not gate.refused and gate.status == "none"
        believed = quiet and not (settled and Rule.SUCCESS_READS in setting.rules) and not state.gap
        no_change = True
    if not believed:
        yield "success(): the write is not in the table", state.proc(who, at="failed")
        return
    doc = held._replace(status=Status.COMMITTED, named=not no_change, no_change=no_change)
    claims = (*doc.claims[:-1], doc.claims[-1]._replace(cleaned=not no_change))  # all its jobs have succeeded
    request = Request("document", attempt, held.etag, doc=doc._replace(claims=claims))
    what = "no change" if no_change else f"version {gate.version}"
    yield f"success(): reads the table: {what}", state.proc(who, at="put success", request=request)


def put_success(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Say committed."""
    yield from send(
        setting,
        state,
        who,
        won=lambda won: answers(won, who, _told(won), "tidy"),
        lost=lambda lost: lost.proc(who, at="look"),
        failed=lambda doubt: doubt.proc(who, at="unanswered"),
    )


def look(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Somebody else has changed the document: only what it says counts."""
    attempt, doc = attempt_of(who), state.doc
    assert doc is not None
    if doc.status is Status.COMMITTED and doc.owner == attempt:
        yield "success(): reads the document: committed", answers(state, who, _told(state), "tidy")
    else:
        yield f"success(): reads the document: {doc.status.value}", state.proc(who, at="failed")


def _told(state: State) -> str:
    """What a block answers whose write is committed: that of nothing another attempt may claim anew."""
    assert state.doc is not None
    return "no change" if state.doc.no_change else "success"


def answers(state: State, who: int, answer: str, at: str) -> State:
    """End the block with an answer."""
    return state.gate(attempt_of(who), shut=True, closed=True).proc(who, at=at, answer=answer, settling=None)


def tidy(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Hygiene after success: the own marker, then what earlier attempts have left."""
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
    """The program has said success and nobody answered it: settle as the table says."""
    if attempt_of(who) == 0 and state.procs[WATCHDOG].at not in ("idle", "off"):
        yield from after_deadline(state, who, "failed")
        return
    yield from _halted(state, who, Cause.UNANSWERED, then="ended", failed="unsettled")


def failed(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Shut, cancel, wait, settle; or let the watchdog, which has begun, do it."""
    attempt = attempt_of(who)
    if attempt == 0 and state.procs[WATCHDOG].at not in ("idle", "off"):
        yield from after_deadline(state, who, "failed")
        return
    statement = STATEMENTS[attempt]
    if setting.may(state, Fault.AGAIN) and state.procs[statement].at == "off":
        yield "the block catches the error, and runs its statement again", _again(state, who)
    yield from _halted(state, who, Cause.EXCEPTION, then="ended", failed="unsettled")


def _halted(state: State, who: int, cause: Cause, *, then: str, failed: str) -> Iterator[tuple[str, State]]:
    """Stop the block's work, as far as it can be stopped, and say what is known of it."""
    attempt = attempt_of(who)
    state = state.gate(attempt, shut=True)
    held, gate = state.procs[GUARDS[attempt]].held, state.gates[attempt]
    assert held is not None
    statement = state.procs[STATEMENTS[attempt]].at
    answered = gate.status in ("none", "landed")
    job = Settling(cause, held.epoch, nothing_sent=not gate.passed, quiet=-1, then=then, failed=failed)
    if statement == "data":
        cancelled = cancel(state, STATEMENTS[attempt])
        yield "cancels its tasks", recovery.begin(cancelled, who, job._replace(quiet=attempt if answered else -1))
        yield "waits for its tasks, in vain", recovery.begin(state, who, job)
    else:
        yield "settles", recovery.begin(state, who, job._replace(quiet=attempt if answered else -1))


def ended(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Settled, by this guard or by somebody else while it stood still: then it comes back for its own files."""
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
    """Answer what the watchdog has settled."""
    if state.procs[WATCHDOG].at != "done":
        return
    doc = state.doc
    committed = doc is not None and doc.status is Status.COMMITTED and doc.owner == attempt_of(who)
    answer = _told(state) if committed and step == "success" else "failure"
    yield f"answers after its watchdog: {answer}", answers(state, who, answer, "done").proc(who, held=None, before=-1)


# -- the watchdog ------------------------------------------------------------------------------------------------------


def watch(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """At the deadline less the lead: shut, cancel, wait, settle."""
    if state.clocks[0] > 0 and state.procs[GUARDS[0]].at in _IN_BLOCK:
        yield from _halted(state, who, Cause.DEADLINE, then="done", failed="exit")
