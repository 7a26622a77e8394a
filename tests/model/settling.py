"""The steps of settling in a Delta log, modelled on `safewriter/tables/delta`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.record.document import CommitPoint, Status
from safewriter.settle.recovery import Cause
from tests.model.recovery import (
    change,
    cleaned,
    cleaning,
    dirty_ones,
    fails,
    goes,
    note,
    put_open,
    put_verdict,
    read,
    seen_by,
    to_note,
    unknown,
    verdict,
)
from tests.model.requests import send
from tests.model.rules import Rule
from tests.model.setting import attempt_of
from tests.model.state import (
    CLOSED,
    FENCE,
    FOREIGN,
    LOOK,
    REMOVES,
    REVERT,
    REWRITE,
    SCHEMA_NOTE,
    TRANSACTION,
    Entry,
    Request,
    changed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.model.setting import Setting
    from tests.model.state import Doc, Settling, State

__all__ = ["STEPS", "steps"]

_GUARDS_OWN: Final = (Cause.EXCEPTION, Cause.UNANSWERED, Cause.DEADLINE)


def steps(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Return the steps that a settling process may take next."""
    settling = state.procs[who].settling
    assert settling is not None
    yield from STEPS[state.procs[who].at](setting, state, who, settling)


# -- S2: the fence -----------------------------------------------------------------------------------------------------


def _fence(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    doc = seen_by(settling)
    if state.gap:
        yield "S2 reads the log: versions are missing", unknown(state, who, settling)
        return
    wanted = Rule.FENCE in setting.rules and (Rule.GUARD_FENCE in setting.rules or settling.cause not in _GUARDS_OWN)
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
        note = after.notes[seen_by(settling).epoch - 1]
        if note == CLOSED:
            return after.proc(who, at="S3")
        if note == SCHEMA_NOTE:
            return _to_fence(setting, after, who, seen_by(settling), 0)
        return unknown(after, who, settling)

    yield from send(setting, state, who, won=goes(who, "S3"), lost=lost, failed=fails(who, settling))


def _put_fence(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    yield from send(setting, state, who, won=goes(who, "S3"), lost=goes(who, "S2"), failed=fails(who, settling))


# -- S3 and S4: look, decide -------------------------------------------------------------------------------------------


def _look(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    doc = seen_by(settling)
    if state.gap and settling.nothing_sent:
        rolled = doc._replace(status=Status.ROLLED_BACK)
        yield "S3 reads the log: versions are missing, none of them ours", verdict(state, who, settling, rolled)
        return
    if state.gap:
        yield "S3 reads the log: versions are missing", unknown(state, who, settling)
        return
    epoch = doc.epoch if Rule.LOOK_EPOCH in setting.rules else 99
    ours = next((slot for slot in state.live() if slot > doc.before and 0 < state.log[slot].epoch <= epoch), -1)
    undo = (
        settling.cause is Cause.EXCEPTION
        or setting.commit_point is CommitPoint.SUCCESS
        or (doc.named and Rule.ROLLING_BACK_BINDS in setting.rules)
    )
    if ours < 0:
        yield "S3 looks: nothing of ours", verdict(state, who, settling, doc._replace(status=Status.ROLLED_BACK))
    elif not undo:
        kept = doc._replace(status=Status.COMMITTED, named=True)
        yield f"S3 looks: version {ours}, keep", verdict(state, who, settling, kept)
    elif obstacle := _obstacle(setting, state, ours):
        yield f"S3 looks: version {ours} {obstacle}, and stays", _stays(setting, state, who, settling, ours)
    elif doc.status is Status.ROLLING_BACK or Rule.ROLLING_BACK_FIRST not in setting.rules:
        yield f"S3 looks: version {ours}, undo", state.proc(who, at="S5", settling=settling._replace(ours=ours))
    else:
        yield (
            f"S3 looks: version {ours}, undo",
            change(state, who, "S4 rolling", doc, doc._replace(status=Status.ROLLING_BACK, named=True)),
        )


# -- S5: undo ----------------------------------------------------------------------------------------------------------


def _obstacle(setting: Setting, state: State, ours: int) -> str:
    """Return, by the log alone, why our commit must stay; empty if it need not."""
    more, rules = state.log[ours].more, setting.rules
    if (more == REMOVES and Rule.UNDO_ADDS in rules) or (more == TRANSACTION and Rule.UNDO_TRANSACTION in rules):
        return f"has more than added files: {more}"
    used = next((entry.kind for entry in state.log if entry.kind in (REWRITE, LOOK) and entry.slot == ours), "")
    return f"has met another's {used}" if used and Rule.UNDO_REFUSED in rules else ""


def _stays(setting: Setting, state: State, who: int, settling: Settling, ours: int) -> State:
    """Refuse the undo. With commit_point=success the gate must not have passed such a commit."""
    kept = seen_by(settling)._replace(status=Status.COMMITTED, named=True)
    if setting.commit_point is CommitPoint.SUCCESS and state.log[ours].more:
        state = state._replace(broken="a write counts without success(), and no undo could take it back")
    return verdict(state, who, settling, kept)


def _undo(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    doc, ours = seen_by(settling), settling.ours
    if state.gap:
        yield "S5 reads the log: versions are missing", unknown(state, who, settling)
    elif ours not in state.live():
        rolled = doc._replace(status=Status.ROLLED_BACK)
        yield "S5 reads the log: undone", verdict(state, who, settling, rolled)
    elif obstacle := _obstacle(setting, state, ours):
        yield f"S5 reads the log: our commit {obstacle}, and stays", _stays(setting, state, who, settling, ours)
    else:
        request = Request("log", attempt_of(who), len(state.log), entry=Entry(REVERT, slot=ours))
        yield "S5 reads the log: revert due", state.proc(who, at="S5 put", request=request)


def _put_revert(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    def won(after: State) -> State:
        since = after.log[settling.ours + 1 :]
        if Rule.TARGETED_REVERT not in setting.rules and any(entry.kind in (FOREIGN, REWRITE) for entry in since):
            after = after._replace(broken="a commit of somebody else is undone")
        return verdict(after, who, settling, seen_by(settling)._replace(status=Status.ROLLED_BACK))

    yield from send(setting, state, who, won=won, lost=goes(who, "S5"), failed=fails(who, settling))


# -- S6: clean-up, also under a verdict that is older ------------------------------------------------------------------


def _clean(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    doc = state.doc
    if doc is None:
        yield "S6 reads the document: there is none", cleaned(state, who, settling)
        return
    dirty = dirty_ones(setting, doc, settling)
    if not dirty or state.gap:
        yield "S6 reads the document: all is clean", cleaned(state, who, settling)
        return
    alive = _may_be_alive(state, settling, doc, dirty)
    if alive and not any(entry.epoch >= max(alive) for entry in state.log[doc.claims[0].before + 1 :]):
        note = state.notes[max(alive) - 1]
        if state.log or note == SCHEMA_NOTE:
            request = Request("log", attempt_of(who), len(state.log), entry=Entry(FENCE, epoch=max(alive)))
            yield "S6 reads document and log: fence due", state.proc(who, at="S6 fence", request=request)
            return
        if note != CLOSED:
            request = Request("note", attempt_of(who), max(alive), note=CLOSED)
            closing = cleaned(state, who, settling) if note else state.proc(who, at="S6 fence", request=request)
            yield "S6 reads document and log: empty", closing
            return
    spared = tuple(attempt for attempt in range(3) if Rule.CLEAN_REFERRED in setting.rules and state.refers(attempt))
    yield (
        f"S6 reads document and log: cleans up after {', '.join(str(attempt + 1) for attempt in dirty)}",
        state.proc(who, at="S6 delete", settling=cleaning(state, doc, settling)._replace(spared=spared)),
    )


def _may_be_alive(state: State, settling: Settling, doc: Doc, dirty: list[int]) -> list[int]:
    """Return the epochs of the attempts with files of which the settler itself does not know that they are dead."""
    unsent = doc.owner if settling.nothing_sent and settling.by_me else -1
    left = [attempt for attempt in dirty if state.files[attempt] in ("there", "stray")]
    known = (settling.quiet, unsent)
    return [e for e, claim in enumerate(doc.claims, 1) if claim.attempt in left and claim.attempt not in known]


def _put_clean_fence(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    def failed(after: State) -> State:
        return cleaned(after, who, settling)

    yield from send(setting, state, who, won=goes(who, "S6"), lost=goes(who, "S6"), failed=failed)


def _delete(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    doc = seen_by(settling)
    dirty = dirty_ones(setting, doc, settling)
    doomed = dirty if Rule.CLEAN_OWN_PREFIX in setting.rules else range(3)
    files, removed = state.files, False
    for attempt in doomed:
        if files[attempt] in ("there", "stray") and attempt not in settling.spared:
            files, removed = changed(files, attempt, "deleted"), True
    after = state._replace(files=files)
    what = "S6 deletes files" if removed else "S6 finds no files"
    yield what, to_note(setting, after, who, settling, removed=removed)


STEPS: Final[dict[str, Callable[[Setting, State, int, Settling], Iterator[tuple[str, State]]]]] = {
    "S1": read,
    "S2": _fence,
    "S2 close": _close,
    "S2 put": _put_fence,
    "S3": _look,
    "S4 rolling": put_open,
    "S4 close": put_verdict,
    "S5": _undo,
    "S5 put": _put_revert,
    "S6": _clean,
    "S6 fence": _put_clean_fence,
    "S6 delete": _delete,
    "S6 note": note,
}
