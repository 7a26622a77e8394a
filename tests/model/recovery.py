"""What settling is whatever the table's format: the document's part of it, as `safewriter/settle/recovery.py` has it.

The steps bear the numbers of docs/concepts/settling.md; between any two requests anybody else may come.
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
    """Let a process settle."""
    return state.proc(who, at="S1", settling=settling, request=None)


def is_dead(setting: Setting, state: State, doc: Doc) -> bool:
    """Tell whether an owner counts as dead: by its lease, or by its deadline and grace."""
    return Rule.ONLY_THE_DEAD not in setting.rules or state.expired[doc.owner] or state.clocks[doc.owner] == 2


# -- S1: the document --------------------------------------------------------------------------------------------------


def read(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    """Go on only with an open document, and one of the epoch that is to be settled."""
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
    """Nobody but the attempt itself may settle a healthy one."""
    owner = doc.owner
    own = who in (GUARDS[owner], WATCHDOG if owner == 0 else -1, SUPERVISOR if owner == 0 else -1)
    at = state.procs[GUARDS[owner]].at
    if own or at in ("dead", "done", "off") or state.expired[owner] or state.clocks[owner] == 2:
        return state
    return state._replace(broken=f"attempt {owner + 1} is healthy, and attempt {attempt_of(who) + 1} settles it")


# -- S4: what the document is to say -----------------------------------------------------------------------------------


def change(state: State, who: int, at: str, seen: Doc, doc: Doc) -> State:
    """Be about to change the document from what was seen of it."""
    return state.proc(who, at=at, request=Request("document", attempt_of(who), seen.etag, doc=doc))


def verdict(state: State, who: int, settling: Settling, doc: Doc) -> State:
    """Be about to close the write; one that is committed may lack rows."""
    doc = doc._replace(incomplete=settling.lost and doc.status is Status.COMMITTED)
    return change(state, who, "S4 close", seen_by(settling), doc)


def unknown(state: State, who: int, settling: Settling) -> State:
    """Be about to say that the table cannot tell; or, if the document says so already, leave it to a person."""
    doc = seen_by(settling)
    if doc.status is Status.UNKNOWN:
        return state.proc(who, at=settling.failed, settling=None, request=None)
    return change(state, who, "S4 rolling", doc, doc._replace(status=Status.UNKNOWN))


def put_open(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    """Say what is about to be done, or that the table cannot tell, and begin again."""
    yield from send(setting, state, who, won=goes(who, "S1"), lost=goes(who, "S1"), failed=fails(who, settling))


def put_verdict(setting: Setting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    """Close the write, then clean up."""

    def won(after: State) -> State:
        at = settling.then if settling.cleans_later else "S6"
        return after.proc(who, at=at, settling=settling._replace(by_me=True))

    yield from send(setting, state, who, won=won, lost=goes(who, "S1"), failed=fails(who, settling))


# -- S6: who is clean --------------------------------------------------------------------------------------------------


def dirty_ones(setting: Setting, doc: Doc, settling: Settling) -> list[int]:
    """Return whose files may go. Under an open document those of an earlier attempt that comes back for them."""
    if doc.status in OPEN and Rule.CLEAN_TERMINAL in setting.rules:
        return [claim.attempt for claim in doc.claims[:-1] if claim.attempt == settling.quiet]
    return [claim.attempt for claim in doc.claims if not claim.cleaned or claim.attempt == settling.quiet]


def cleaning(state: State, doc: Doc, settling: Settling) -> Settling:
    """Return a settling that has read the document and goes on to clean up."""
    return settling._replace(seen=doc, over=tuple(attempt for attempt, clock in enumerate(state.clocks) if clock == 2))


def to_note(setting: Setting, state: State, who: int, settling: Settling, *, removed: bool) -> State:
    """Go on to say in the document who is clean now, if there is anything to say and the document is not another's."""
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
    """Note under the verdict who is clean; their markers go then."""

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
    """Return to where the settling was begun."""
    done = settling._replace(seen=None, ours=-1, spared=(), over=())
    return state.proc(who, at=settling.then, settling=done, request=None)


def seen_by(settling: Settling) -> Doc:
    """Return the document as the settler has read it."""
    assert settling.seen is not None
    return settling.seen


def fails(who: int, settling: Settling) -> Callable[[State], State]:
    """Return what a write without an answer leads to."""
    return lambda state: state.proc(who, at=settling.failed, settling=None)


def goes(who: int, at: str) -> Callable[[State], State]:
    """Return a step to another place."""
    return lambda state: state.proc(who, at=at)
