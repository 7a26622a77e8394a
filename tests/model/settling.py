"""Settle and clean, as `safewriter/recovery.py` does: one piece of code for guard, watchdog, supervisor and operator.

The steps bear the numbers of PROTOCOL.md; between any two requests anybody else may come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.recovery import Cause
from safewriter.state import OPEN, CommitPoint, Status
from tests.model.requests import send
from tests.model.rules import Rule
from tests.model.setting import GUARDS, SUPERVISOR, WATCHDOG, attempt_of
from tests.model.state import CLOSED, FENCE, FOREIGN, REVERT, REWRITE, SCHEMA_NOTE, Claim, Entry, Request, changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.model.setting import Setting
    from tests.model.state import Doc, Settling, State

__all__ = ["STEPS", "begin", "is_dead", "steps"]

GUARDS_OWN: Final = (Cause.EXCEPTION, Cause.DEADLINE)


def begin(state: State, who: int, settling: Settling) -> State:
    """Let a process settle."""
    return state.proc(who, at="S1", settling=settling, request=None)


def steps(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Return what a settling process may do next."""
    settling = state.procs[who].settling
    assert settling is not None
    yield from STEPS[state.procs[who].at](setting, state, who, settling)


def is_dead(setting: Setting, state: State, doc: Doc) -> bool:
    """Tell whether an owner counts as dead: by its lease, or by its deadline and grace."""
    return Rule.ONLY_THE_DEAD not in setting.rules or state.expired[doc.owner] or state.clocks[doc.owner] == 2


# -- S1: the document --------------------------------------------------------------------------------------------------


def _read(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    doc = state.doc
    limited = settling.epoch and Rule.OWN_EPOCH_ONLY in setting.rules
    if doc is None or doc.status not in OPEN or (limited and settling.epoch != doc.epoch):
        yield "S1 reads the document: nothing to settle", state.proc(who, at=settling.then)
        return
    at = "S3" if settling.nothing_sent else "S2"
    state = _disturbs(state, who, doc)
    yield (
        f"S1 reads the document: {doc.status.value}, epoch {doc.epoch}",
        state.proc(who, at=at, settling=settling._replace(seen=doc)),
    )


def _disturbs(state: State, who: int, doc: Doc) -> State:
    """Nobody but the attempt itself may settle a healthy one."""
    owner = doc.owner
    own = who in (GUARDS[owner], WATCHDOG if owner == 0 else -1, SUPERVISOR if owner == 0 else -1)
    at = state.procs[GUARDS[owner]].at
    if own or at in ("dead", "done", "off") or state.expired[owner] or state.clocks[owner] == 2:
        return state
    return state._replace(broken=f"attempt {owner + 1} is healthy, and attempt {attempt_of(who) + 1} settles it")


# -- S2: the fence -----------------------------------------------------------------------------------------------------


def _fence(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    doc = _seen(settling)
    if state.gap:
        yield "S2 reads the log: versions are missing", _unknown(state, who, settling)
        return
    wanted = Rule.FENCE in setting.rules and (Rule.GUARD_FENCE in setting.rules or settling.cause not in GUARDS_OWN)
    if not wanted or any(entry.epoch >= doc.epoch for entry in state.log[doc.before + 1 :]):
        yield "S2 reads the log: no fence needed", state.proc(who, at="S3")
    elif state.log:
        yield "S2 reads the log: fence due", _to_fence(setting, state, who, doc, len(state.log))
    elif Rule.CREATION_NOTE in setting.rules:
        closing = Request("note", attempt_of(who), doc.epoch, note=CLOSED)
        yield "S2 reads the log: empty", state.proc(who, at="S2 close", request=closing)
    else:
        yield "S2 reads the log: empty, nothing to fence with", state.proc(who, at="S3")


def _to_fence(setting: Setting, state: State, who: int, doc: Doc, slot: int) -> State:
    epoch = doc.epoch if Rule.FENCE_DEAD_EPOCH in setting.rules else doc.epoch + 1
    request = Request("log", attempt_of(who), slot, entry=Entry(FENCE, epoch=epoch))
    return state.proc(who, at="S2 put", request=request)


def _close(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    def lost(after: State) -> State:
        note = after.notes[_seen(settling).epoch - 1]
        if note == CLOSED:
            return after.proc(who, at="S3")
        if note == SCHEMA_NOTE:
            return _to_fence(setting, after, who, _seen(settling), 0)
        return _unknown(after, who, settling)

    yield from send(setting, state, who, won=_goes(who, "S3"), lost=lost, failed=_fails(who, settling))


def _put_fence(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    yield from send(setting, state, who, won=_goes(who, "S3"), lost=_goes(who, "S2"), failed=_fails(who, settling))


# -- S3 and S4: look, decide -------------------------------------------------------------------------------------------


def _look(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    doc = _seen(settling)
    if state.gap and settling.nothing_sent:
        rolled = doc._replace(status=Status.ROLLED_BACK)
        yield "S3 reads the log: versions are missing, none of them ours", _verdict(state, who, settling, rolled)
        return
    if state.gap:
        yield "S3 reads the log: versions are missing", _unknown(state, who, settling)
        return
    epoch = doc.epoch if Rule.LOOK_EPOCH in setting.rules else 99
    ours = next((slot for slot in state.live() if slot > doc.before and 0 < state.log[slot].epoch <= epoch), -1)
    undo = (
        settling.cause is Cause.EXCEPTION
        or setting.commit_point is CommitPoint.SUCCESS
        or (doc.named and Rule.ROLLING_BACK_BINDS in setting.rules)
    )
    if ours < 0:
        yield "S3 looks: nothing of ours", _verdict(state, who, settling, doc._replace(status=Status.ROLLED_BACK))
    elif not undo:
        kept = doc._replace(status=Status.COMMITTED, named=True)
        yield f"S3 looks: version {ours}, keep", _verdict(state, who, settling, kept)
    elif doc.status is Status.ROLLING_BACK or Rule.ROLLING_BACK_FIRST not in setting.rules:
        yield f"S3 looks: version {ours}, undo", state.proc(who, at="S5", settling=settling._replace(ours=ours))
    else:
        yield (
            f"S3 looks: version {ours}, undo",
            _change(state, who, "S4 rolling", doc, doc._replace(status=Status.ROLLING_BACK, named=True)),
        )


def _change(state: State, who: int, at: str, seen: Doc, doc: Doc) -> State:
    return state.proc(who, at=at, request=Request("document", attempt_of(who), seen.etag, doc=doc))


def _verdict(state: State, who: int, settling: Settling, doc: Doc) -> State:
    return _change(state, who, "S4 close", _seen(settling), doc)


def _unknown(state: State, who: int, settling: Settling) -> State:
    doc = _seen(settling)
    if doc.status is Status.UNKNOWN:
        return state.proc(who, at=settling.failed, settling=None, request=None)
    return _change(state, who, "S4 rolling", doc, doc._replace(status=Status.UNKNOWN))


def _put_open(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    yield from send(setting, state, who, won=_goes(who, "S1"), lost=_goes(who, "S1"), failed=_fails(who, settling))


def _put_verdict(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    def won(after: State) -> State:
        return after.proc(who, at="S6", settling=settling._replace(by_me=True))

    yield from send(setting, state, who, won=won, lost=_goes(who, "S1"), failed=_fails(who, settling))


# -- S5: undo ----------------------------------------------------------------------------------------------------------


def _undo(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    doc, ours = _seen(settling), settling.ours
    if state.gap:
        yield "S5 reads the log: versions are missing", _unknown(state, who, settling)
    elif ours not in state.live():
        rolled = doc._replace(status=Status.ROLLED_BACK)
        yield "S5 reads the log: undone", _verdict(state, who, settling, rolled)
    elif Rule.UNDO_REFUSED in setting.rules and any(
        entry.kind == REWRITE and entry.slot == ours for entry in state.log
    ):
        kept = doc._replace(status=Status.COMMITTED)
        yield "S5 reads the log: our files were rewritten, undo refused", _verdict(state, who, settling, kept)
    elif state.vacuumed and Rule.REFUSAL_TAKES_SLOT in setting.rules:
        request = Request("log", attempt_of(who), len(state.log), entry=Entry(FENCE, epoch=doc.epoch))
        yield "S5 reads log and table: files are gone", state.proc(who, at="S5 take", request=request)
    elif state.vacuumed:
        kept = doc._replace(status=Status.COMMITTED)
        yield "S5 reads log and table: files are gone, undo refused", _verdict(state, who, settling, kept)
    else:
        request = Request("log", attempt_of(who), len(state.log), entry=Entry(REVERT, slot=ours))
        yield "S5 reads the log: revert due", state.proc(who, at="S5 put", request=request)


def _put_revert(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    def won(after: State) -> State:
        since = after.log[settling.ours + 1 :]
        if Rule.TARGETED_REVERT not in setting.rules and any(entry.kind in (FOREIGN, REWRITE) for entry in since):
            after = after._replace(broken="a commit of somebody else is undone")
        return _verdict(after, who, settling, _seen(settling)._replace(status=Status.ROLLED_BACK))

    yield from send(setting, state, who, won=won, lost=_goes(who, "S5"), failed=_fails(who, settling))


def _take_slot(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    def won(after: State) -> State:
        return _verdict(after, who, settling, _seen(settling)._replace(status=Status.COMMITTED))

    yield from send(setting, state, who, won=won, lost=_goes(who, "S5"), failed=_fails(who, settling))


# -- S6: clean-up, also under a verdict that is older ------------------------------------------------------------------


def _clean(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    doc = state.doc
    if doc is None:
        yield "S6 reads the document: there is none", _cleaned(state, who, settling)
        return
    dirty = _dirty(setting, doc, settling)
    if not dirty or state.gap:
        yield "S6 reads the document: all is clean", _cleaned(state, who, settling)
        return
    spared = tuple(attempt for attempt in range(3) if Rule.CLEAN_REFERRED in setting.rules and state.refers(attempt))
    yield (
        f"S6 reads document and log: cleans up after {', '.join(str(attempt + 1) for attempt in dirty)}",
        state.proc(who, at="S6 delete", settling=settling._replace(seen=doc, spared=spared)),
    )


def _dirty(setting: Setting, doc: Doc, settling: Settling) -> list[int]:
    """Return whose files may go. Under an open document those of an earlier attempt that comes back for them."""
    if doc.status in OPEN and Rule.CLEAN_TERMINAL in setting.rules:
        return [claim.attempt for claim in doc.claims[:-1] if claim.attempt == settling.quiet]
    return [claim.attempt for claim in doc.claims if not claim.cleaned or claim.attempt == settling.quiet]


def _delete(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    doc = _seen(settling)
    dirty = _dirty(setting, doc, settling)
    doomed = dirty if Rule.CLEAN_OWN_PREFIX in setting.rules else range(3)
    files, removed = state.files, False
    for attempt in doomed:
        if files[attempt] in ("there", "stray") and attempt not in settling.spared:
            files, removed = changed(files, attempt, "deleted"), True
    after = state._replace(files=files)
    done = [
        attempt
        for attempt in dirty
        if attempt == settling.quiet or state.clocks[attempt] == 2 or Rule.CLEAN_GRACE not in setting.rules
    ]
    what = "S6 deletes files" if removed else "S6 finds no files"
    if (not done and not removed) or (doc.status in OPEN and Rule.CLEAN_TERMINAL in setting.rules):
        yield what, _cleaned(after, who, settling)
        return
    claims = tuple(Claim(c.attempt, c.before, cleaned=c.cleaned or c.attempt in done) for c in doc.claims)
    yield what, _change(after, who, "S6 note", doc, doc._replace(claims=claims))


def _note(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    def won(after: State) -> State:
        doc, before = after.doc, _seen(settling)
        assert doc is not None
        for claim, old in zip(doc.claims, before.claims, strict=True):
            if claim.cleaned and (not old.cleaned or claim.attempt == settling.quiet):
                after = after.marker(setting.marker(claim.attempt), there=False)
        return _cleaned(after, who, settling)

    def failed(after: State) -> State:
        return _cleaned(after, who, settling)

    yield from send(setting, state, who, won=won, lost=_goes(who, "S6"), failed=failed)


def _cleaned(state: State, who: int, settling: Settling) -> State:
    return state.proc(who, at=settling.then, settling=settling._replace(seen=None, ours=-1, spared=()), request=None)


def _seen(settling: Settling) -> Doc:
    assert settling.seen is not None
    return settling.seen


def _fails(who: int, settling: Settling) -> Callable[[State], State]:
    return lambda state: state.proc(who, at=settling.failed, settling=None)


def _goes(who: int, at: str) -> Callable[[State], State]:
    return lambda state: state.proc(who, at=at)


STEPS: Final[dict[str, Callable[[Setting, State, int, Settling], Iterator[tuple[str, State]]]]] = {
    "S1": _read,
    "S2": _fence,
    "S2 close": _close,
    "S2 put": _put_fence,
    "S3": _look,
    "S4 rolling": _put_open,
    "S4 close": _put_verdict,
    "S5": _undo,
    "S5 put": _put_revert,
    "S5 take": _take_slot,
    "S6": _clean,
    "S6 delete": _delete,
    "S6 note": _note,
}
