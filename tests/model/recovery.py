"""The steps of settling on the document, for all table formats, modelled on `safewriter/settle/recovery.py`.

The steps have the numbers of docs/concepts/settling.md; other processes may act between any two requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.record.document import OPEN, Status
from tests.model.requests import send
from tests.model.rules import Rule
from tests.model.setting import GUARDS, SUPERVISOR, WATCHDOG, attempt_of
from tests.model.state import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.model.setting import Setting
    from tests.model.state import Doc, Settling, State

__all__ = [
    "begin",
    "change",
    "cleaned",
    "cleaning",
    "dirty_ones",
    "fails",
    "goes",
    "is_dead",
    "note",
    "put_open",
    "put_verdict",
    "read",
    "seen_by",
    "to_note",
    "unknown",
    "verdict",
]


def begin(state: State, who: int, settling: Settling) -> State:
    """Make a process begin to settle."""
    return state.proc(who, at="S1", settling=settling, request=None)


def is_dead(setting: Setting, state: State, doc: Doc) -> bool:
    """Return whether the owner counts as dead: its lease has expired, or its deadline and grace are over."""
    return Rule.ONLY_THE_DEAD not in setting.rules or state.expired[doc.owner] or state.clocks[doc.owner] == 2


# -- S1: the document --------------------------------------------------------------------------------------------------


def read(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    """Read the document; go on only if it is open and has the epoch to settle."""
    doc = state.doc
    limited = settling.epoch and Rule.OWN_EPOCH_ONLY in setting.rules
    if doc is None or doc.status not in OPEN or (limited and settling.epoch != doc.epoch):
        yield "S1 reads the document: nothing to settle", state.proc(who, at=settling.then)
        return
    at = setting.first_look(nothing_sent=settling.nothing_sent)
    state = _disturbs(state, who, doc)
    yield (
        f"S1 reads the document: {doc.status.value}, epoch {doc.epoch}",
        state.proc(who, at=at, settling=settling._replace(seen=doc)),
    )


def _disturbs(state: State, who: int, doc: Doc) -> State:
    """Mark the state as broken if a process settles another, healthy attempt."""
    owner = doc.owner
    own = who in (GUARDS[owner], WATCHDOG if owner == 0 else -1, SUPERVISOR if owner == 0 else -1)
    at = state.procs[GUARDS[owner]].at
    if own or at in ("dead", "done", "off") or state.expired[owner] or state.clocks[owner] == 2:
        return state
    return state._replace(broken=f"attempt {owner + 1} is healthy, and attempt {attempt_of(who) + 1} settles it")


# -- S4: changes of the document ---------------------------------------------------------------------------------------


def change(state: State, who: int, at: str, seen: Doc, doc: Doc) -> State:
    """Prepare a change of the document that was read."""
    return state.proc(who, at=at, request=Request("document", attempt_of(who), seen.etag, doc=doc))


def verdict(state: State, who: int, settling: Settling, doc: Doc) -> State:
    """Prepare the verdict; a committed write may be incomplete."""
    doc = doc._replace(incomplete=settling.lost and doc.status is Status.COMMITTED)
    return change(state, who, "S4 close", seen_by(settling), doc)


def unknown(state: State, who: int, settling: Settling) -> State:
    """Prepare the status unknown; if the document has it already, leave the write to an operator."""
    doc = seen_by(settling)
    if doc.status is Status.UNKNOWN:
        return state.proc(who, at=settling.failed, settling=None, request=None)
    return change(state, who, "S4 rolling", doc, doc._replace(status=Status.UNKNOWN))


def put_open(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    """Write rolling_back or unknown, and begin again."""
    yield from send(setting, state, who, won=goes(who, "S1"), lost=goes(who, "S1"), failed=fails(who, settling))


def put_verdict(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    """Write the verdict, then clean up."""

    def won(after: State) -> State:
        at = settling.then if settling.cleans_later else "S6"
        return after.proc(who, at=at, settling=settling._replace(by_me=True))

    yield from send(setting, state, who, won=won, lost=goes(who, "S1"), failed=fails(who, settling))


# -- S6: noting clean attempts -----------------------------------------------------------------------------------------


def dirty_ones(setting: Setting, doc: Doc, settling: Settling) -> list[int]:
    """Return the attempts whose files may be deleted; under an open document, only an earlier one that comes back."""
    if doc.status in OPEN and Rule.CLEAN_TERMINAL in setting.rules:
        return [claim.attempt for claim in doc.claims[:-1] if claim.attempt == settling.quiet]
    return [claim.attempt for claim in doc.claims if not claim.cleaned or claim.attempt == settling.quiet]


def cleaning(state: State, doc: Doc, settling: Settling) -> Settling:
    """Return the settling with the document that it has read, for the clean-up."""
    return settling._replace(seen=doc, over=tuple(attempt for attempt, clock in enumerate(state.clocks) if clock == 2))


def to_note(setting: Setting, state: State, who: int, settling: Settling, *, removed: bool) -> State:
    """Prepare the note of the attempts that are now clean, unless there is nothing to note or the document is open."""
    doc = seen_by(settling)
    done = [
        attempt
        for attempt in dirty_ones(setting, doc, settling)
        if attempt == settling.quiet or attempt in settling.over or Rule.CLEAN_GRACE not in setting.rules
    ]
    if (not done and not removed) or (doc.status in OPEN and Rule.CLEAN_TERMINAL in setting.rules):
        return cleaned(state, who, settling)
    claims = tuple(claim._replace(cleaned=claim.cleaned or claim.attempt in done) for claim in doc.claims)
    return change(state, who, "S6 note", doc, doc._replace(claims=claims))


def note(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    """Record in the settled document the attempts that are clean, then delete their markers."""

    def won(after: State) -> State:
        doc, before = after.doc, seen_by(settling)
        assert doc is not None
        for claim, old in zip(doc.claims, before.claims, strict=True):
            if claim.cleaned and (not old.cleaned or claim.attempt == settling.quiet):
                after = after.marker(setting.marker(claim.attempt), there=False)
        return cleaned(after, who, settling)

    def failed(after: State) -> State:
        return cleaned(after, who, settling)

    yield from send(setting, state, who, won=won, lost=goes(who, "S6"), failed=failed)


def cleaned(state: State, who: int, settling: Settling) -> State:
    """Return the process to the step from which it began to settle."""
    done = settling._replace(seen=None, ours=-1, spared=(), over=())
    return state.proc(who, at=settling.then, settling=done, request=None)


def seen_by(settling: Settling) -> Doc:
    """Return the document that the settler has read."""
    assert settling.seen is not None
    return settling.seen


def fails(who: int, settling: Settling) -> Callable[[State], State]:
    """Return the transition after a write without a response."""
    return lambda state: state.proc(who, at=settling.failed, settling=None)


def goes(who: int, at: str) -> Callable[[State], State]:
    """Return the transition to another step."""
    return lambda state: state.proc(who, at=at)
