"""Everything around a block: its supervisor, Lambda, time, the network, other writers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.record.document import OPEN, Status
from safewriter.settle.recovery import Cause
from tests.model import recovery
from tests.model.requests import apply, can_ever_fit, fits, name_of_request, send
from tests.model.rules import Fault, Rule
from tests.model.setting import GUARDS, OPERATOR, STATEMENTS, SUPERVISOR, WATCHDOG, attempt_of
from tests.model.state import FOREIGN, LOOK, RESTORE, REVERT, REWRITE, Entry, Request, Settling, changed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.setting import Setting
    from tests.model.state import State

__all__ = ["answer", "events", "is_forgotten", "kill_child", "others", "supervise", "tell"]

_OVER = ("done", "dead", "off")


# -- the supervisor, as `safewriter/settle/supervisor.py` --------------------------------------------------------------


def supervise(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Once the child has ended or is too late, kill what is left of it and go on to read the document."""
    over = state.procs[GUARDS[0]].at in ("done", "dead")
    if not over and state.clocks[0] == 0:
        return
    what = "the child has ended" if over else "the child is too late"
    if Rule.KILL_FIRST in setting.rules:
        yield f"{what}: kills all of it", kill_child(state).proc(who, at="judge")
    else:
        yield what, state.proc(who, at="judge")


def judge(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Read the document; settle it if the child owns it."""
    doc = state.doc
    if doc is None or doc.status not in OPEN or doc.owner != 0:
        yield "reads the document: nothing to settle", state.proc(who, at="answer")
        return
    sent, lost = state.gates[0].journal, _is_told(setting, state)
    job = Settling(Cause.KILLED, doc.epoch, nothing_sent=not sent, quiet=-1, then="answer", failed="done", lost=lost)
    yield "reads the document: open", recovery.begin(state, who, job)


def answer(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Answer by the document; first record in it a statement that was refused after the block's end."""
    doc = state.doc
    good = doc is not None and doc.status is Status.COMMITTED and not doc.incomplete
    if good and doc is not None and doc.owner == 0 and _is_told(setting, state):
        request = Request("document", 0, doc.etag, doc=doc._replace(incomplete=True))
        yield "reads in the journal that rows are missing", state.proc(who, at="tell", request=request, settling=None)
        return
    yield "answers", state.proc(who, at="done", answer="success" if good else "failure", settling=None)


def _is_told(setting: Setting, state: State) -> bool:
    """Return whether the journal has a refused statement of the child."""
    return Rule.REFUSAL_TOLD in setting.rules and bool(state.gates[0].refused)


def tell(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Record in the document that rows are missing; the answer does not depend on the outcome."""

    def ended(after: State) -> State:
        return after.proc(who, at="done", answer="failure")

    yield from send(setting, state, who, won=ended, lost=ended, failed=ended)


def kill_child(state: State) -> State:
    """End the job's process; the supervisor and requests in the air stay."""
    for who in (GUARDS[0], STATEMENTS[0], WATCHDOG):
        state = _dead(state, who)
    return state


def _dead(state: State, who: int) -> State:
    if state.procs[who].at in ("done", "off", "dead"):
        return state
    return state.proc(who, at="dead", held=None, request=None, settling=None, before=-1, slot=0)


# -- events of processes and requests ----------------------------------------------------------------------------------


def events(setting: Setting, state: State) -> Iterator[tuple[str, State]]:
    """Return the events of Lambda, time and network, and the emptying of the checkpoint bucket."""
    for attempt in (0, 1) if setting.second else (0,):
        if state.procs[GUARDS[attempt]].at not in ("off", "mark") or attempt == 0:
            yield from _lambda(setting, state, attempt)
            yield from _time(setting, state, attempt)
    yield from _network(setting, state)
    if setting.may(state, Fault.EMPTY) and state.doc is not None and _is_between(setting, state):
        bare = state._replace(doc=None, notes=("",) * 4, markers=(False,) * 3, files=_of_nobody(state))
        yield "somebody empties the checkpoint bucket", bare.spend()


def _is_between(setting: Setting, state: State) -> bool:
    """Return whether no attempt is running and no request is in the air."""
    attempts = (0, 1) if setting.second else (0,)
    quiet = all(_is_over(state, attempt) or state.procs[GUARDS[attempt]].at == "mark" for attempt in attempts)
    return quiet and not state.air and state.procs[OPERATOR].at in ("idle", *_OVER)


def _of_nobody(state: State) -> tuple[str, ...]:
    """Return the files, now unknown to every settler: only the orphans command can delete them."""
    return tuple("stray" if found == "there" else found for found in state.files)


def others(setting: Setting, state: State) -> Iterator[tuple[str, State]]:
    """Return the actions of others on a Delta table and its document."""
    if setting.may(state, Fault.GAP) and len(state.log) > 1 and not state.gap:
        yield "the log loses versions", state.spend()._replace(gap=True)
    if setting.may(state, Fault.FORGET) and is_forgotten(setting, state):
        yield "the document is deleted", state.spend()._replace(doc=None, files=_of_nobody(state))
    if setting.may(state, Fault.RESTORE) and not state.live():
        for slot in sorted({entry.slot for entry in state.log if entry.kind == REVERT} - state.restored()):
            after = state.spend()
            yield "somebody restores an undone commit", after._replace(log=(*after.log, Entry(RESTORE, slot=slot)))
    if state.foreign:
        for entry in (
            Entry(FOREIGN),
            *(
                entry
                for slot in state.live()
                for entry in (Entry(REWRITE, slot=slot), Entry(LOOK, slot=slot))
                if entry not in state.log
            ),
        ):
            yield (
                f"somebody else commits: {entry.kind}",
                state._replace(log=(*state.log, entry), foreign=state.foreign - 1),
            )


def is_forgotten(setting: Setting, state: State) -> bool:
    """Return whether a lifecycle rule may delete the open document: weeks later, with no process or request left."""
    attempts = (0, 1) if setting.second else (0,)
    ended = all(_is_over(state, attempt) and state.clocks[attempt] == 2 for attempt in attempts)
    return (
        ended
        and not state.air
        and state.procs[OPERATOR].at in ("idle", *_OVER)
        and state.doc is not None
        and state.doc.status in OPEN
    )


def _members(attempt: int) -> tuple[int, ...]:
    own = (GUARDS[attempt], STATEMENTS[attempt])
    return (*own, WATCHDOG, SUPERVISOR) if attempt == 0 else own


def _is_over(state: State, attempt: int) -> bool:
    idle = ("idle",) if state.procs[GUARDS[attempt]].at in ("done", "dead") else ()
    return all(state.procs[who].at in (*_OVER, *(idle if who == WATCHDOG else ())) for who in _members(attempt))


def _lambda(setting: Setting, state: State, attempt: int) -> Iterator[tuple[str, State]]:
    if _is_over(state, attempt):
        return
    name = f"SIGKILL of sandbox {attempt + 1}"
    if setting.may(state, Fault.KILL):
        yield from _kills(name, state.spend(), _members(attempt))
    if state.clocks[attempt] == 1:
        yield from _kills(f"{name} at its deadline", state, _members(attempt))
    if attempt == 0 and setting.supervised and setting.may(state, Fault.KILL_CHILD):
        child = (GUARDS[0], STATEMENTS[0], WATCHDOG)
        if state.procs[GUARDS[0]].at not in _OVER:
            yield from _kills("SIGKILL of child 1", state.spend(), child)
            yield "SIGKILL of child 1, its JVM goes on", _dead(_dead(state.spend(), GUARDS[0]), WATCHDOG)
    if setting.may(state, Fault.STALL) and not state.expired[attempt]:
        yield (
            f"sandbox {attempt + 1} stands still, its lease expires",
            state.spend()._replace(expired=changed(state.expired, attempt, value=True)),
        )


def _kills(name: str, state: State, members: tuple[int, ...]) -> Iterator[tuple[str, State]]:
    """Kill processes; a request that one of them was about to send may already be in the air."""
    killed = state
    for who in members:
        killed = _dead(killed, who)
    yield name, killed
    for who in members:
        request = state.procs[who].request
        if request is None and state.procs[who].at == "data":
            request = Request("data", attempt_of(who))
        if request is not None:
            yield f"{name}, a request of it in the air", killed._replace(air=(*killed.air, request))


def _time(setting: Setting, state: State, attempt: int) -> Iterator[tuple[str, State]]:
    over, clock = _is_over(state, attempt), state.clocks[attempt]
    ended = state.procs[GUARDS[attempt]].at in ("done", "dead")
    if not state.expired[attempt] and ended and state.doc is not None:
        yield (
            f"the lease of attempt {attempt + 1} expires",
            state._replace(expired=changed(state.expired, attempt, value=True)),
        )
    if not setting.deadline:
        return
    if clock == 0 and not over:
        yield f"lead time of attempt {attempt + 1}", state._replace(clocks=changed(state.clocks, attempt, 1))
    data = any(request.kind == "data" and request.attempt == attempt for request in state.air)
    if clock < 2 and (over or (clock == 1 and state.expired[attempt])) and not data:
        yield (
            f"deadline and grace of attempt {attempt + 1} are over",
            state._replace(clocks=changed(state.clocks, attempt, 2)),
        )


def _network(setting: Setting, state: State) -> Iterator[tuple[str, State]]:
    for at, request in enumerate(state.air):
        rest = state._replace(air=(*state.air[:at], *state.air[at + 1 :]))
        if fits(setting, state, request):
            yield f"what was in the air lands: {name_of_request(request)}", apply(rest, request)
        elif not can_ever_fit(setting, state, request):
            yield "what was in the air is refused", rest
