"""The sweeper, modelled on `safewriter/settle/one_write.py`: one visit to the write, or to one of its markers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.record.document import OPEN, Status
from safewriter.settle.recovery import Cause
from tests.model import recovery
from tests.model.requests import send
from tests.model.rules import Rule
from tests.model.state import Claim, Doc, Request, Settling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.setting import Setting
    from tests.model.state import State

__all__ = ["sweep", "take_away"]


def sweep(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Settle an abandoned write, clean up after a settled one, or handle a marker."""
    doc = state.doc
    if doc is not None:
        # Limited to the epoch found dead: a retry may claim the next one before the document is read again.
        job = Settling(Cause.SWEEPER, doc.epoch, nothing_sent=False, quiet=-1, then="done", failed="done")
        if doc.status in OPEN:
            if recovery.is_dead(setting, state, doc):
                yield "settles", recovery.begin(state, who, job)
        elif not all(claim.cleaned for claim in doc.claims):
            yield "cleans", state.proc(who, at="S6", settling=job)
    for attempt in range(2):
        if state.markers[setting.marker(attempt)]:
            yield from _see_to(setting, state, who, attempt)


def _see_to(setting: Setting, state: State, who: int, attempt: int) -> Iterator[tuple[str, State]]:
    """Handle the marker of a clean attempt, or of one that is not in the document and whose time is over."""
    doc = state.doc
    own = None if doc is None else next((claim for claim in doc.claims if claim.attempt == attempt), None)
    name = f"marker {attempt + 1}"
    gone = state.marker(setting.marker(attempt), there=False).proc(who, at="done")
    if own is not None:
        if own.cleaned:
            yield f"{name} has no more to say: takes it away", gone
        return
    if state.clocks[attempt] != 2:
        return
    made = _made(setting, state, attempt) if doc is None else None
    if made is not None:
        request = Request("document", -1, 0, doc=made)
        yield f"{name}, no document, and a commit", state.proc(who, at="door", slot=attempt, request=request)
    elif Rule.MARKER_WAITS not in setting.rules and (doc is not None or setting.traced(state) == ()):
        yield f"{name} is of nobody who is known: takes it away", gone


def _made(setting: Setting, state: State, attempt: int) -> Doc | None:
    """Return the document to create for a write without one, None if the table does not hold a commit, or decide."""
    if Rule.ASK_TABLE not in setting.rules:
        return Doc(Status.ROLLED_BACK, (Claim(attempt, -1, cleaned=True),))
    found = setting.traced(state)
    return Doc(Status.COMMITTED, found) if found else None


def take_away(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Create the document, and delete the marker if that request won."""
    marker = setting.marker(state.procs[who].slot)

    def won(after: State) -> State:
        return after.marker(marker, there=False).proc(who, at="done", slot=0)

    def ended(after: State) -> State:
        return after.proc(who, at="done", slot=0)

    yield from send(setting, state, who, won=won, lost=ended, failed=ended)
