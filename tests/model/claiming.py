"""The beginning of a block (marker, document, gate), modelled on `safewriter/block/claim.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.record.document import OPEN, Status
from safewriter.settle.recovery import Cause
from tests.model import recovery
from tests.model.requests import send
from tests.model.rules import Rule
from tests.model.setting import attempt_of
from tests.model.state import Claim, Doc, Request, Settling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.setting import Setting
    from tests.model.state import State

__all__ = ["leave", "mark", "put_claim", "put_skip", "read", "settle_failed"]


def mark(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Step 1: put the marker, and read the table's version."""
    attempt = attempt_of(who)
    if _too_late(setting, state, attempt):
        yield "too late to begin", state.proc(who, at="done", answer="again")
        return
    before = setting.version(state)
    if Rule.MARKER_FIRST in setting.rules:
        state = state.marker(setting.marker(attempt), there=True)
    yield f"marker; the table is at version {before}", _create(setting, state.proc(who, before=before), who)


def _create(setting: Setting, state: State, who: int) -> State:
    attempt = attempt_of(who)
    claim = Claim(attempt, state.procs[who].before)
    doc = Doc(Status.IN_PROGRESS, (claim,), deliveries=frozenset({setting.delivery(attempt)}))
    return state.proc(who, at="claim", request=Request("document", attempt, 0, doc=doc))


def put_claim(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Step 4, the claim (the first one creates the document), and then step 5."""

    def failed(after: State) -> State:
        if Rule.MARKER_STAYS_IN_DOUBT not in setting.rules:
            after = after.marker(setting.marker(attempt_of(who)), there=False)
        return after.proc(who, at="done", answer="again", before=-1)

    def won(after: State) -> State:
        return _open(setting, after, who)

    yield from send(setting, state, who, won=won, lost=lambda after: after.proc(who, at="read"), failed=failed)


def _open(setting: Setting, state: State, who: int) -> State:
    """Begin the block of an attempt that has won the claim."""
    if Rule.MARKER_FIRST not in setting.rules:
        state = state.marker(setting.marker(attempt_of(who)), there=True)
    return setting.opened(state.proc(who, held=state.doc, settling=None), who)


def read(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Steps 2 and 3: read the document, which exists already, or did a moment ago."""
    doc, attempt = state.doc, attempt_of(who)
    if doc is None:
        yield "reads the document: none", _create(setting, state, who)
    elif doc.incomplete and Rule.INCOMPLETE_STAYS in setting.rules:
        yield "reads the document: rows are missing", leave(setting, state, who, "refused")
    elif _is_second_block(setting, doc, attempt):
        yield "reads the document: this run has had a block on the write", leave(setting, state, who, "refused")
    elif doc.status is Status.COMMITTED:
        skipped = doc._replace(deliveries=doc.deliveries | {setting.delivery(attempt)})
        request = Request("document", attempt, doc.etag, doc=skipped)
        yield "reads the document: committed already", state.proc(who, at="skip", request=request, settling=None)
    elif doc.status in OPEN:
        if recovery.is_dead(setting, state, doc):
            job = Settling(Cause.RETRY, doc.epoch, nothing_sent=False, quiet=-1, then="read", failed="unmark")
            yield "reads the document: open, its owner is dead", recovery.begin(state, who, job)
        if not state.expired[doc.owner]:
            yield "reads the document: another attempt lives", leave(setting, state, who, "again")
    elif _too_late(setting, state, attempt):
        yield "reads the document: too late to claim", leave(setting, state, who, "again")
    else:
        claims = (*doc.claims, Claim(attempt, state.procs[who].before))
        claimed = Doc(Status.IN_PROGRESS, claims, deliveries=doc.deliveries | {setting.delivery(attempt)})
        yield (
            f"reads the document: {doc.status.value}",
            state.proc(who, at="claim", request=Request("document", attempt, doc.etag, doc=claimed), settling=None),
        )


def _is_second_block(setting: Setting, doc: Doc, attempt: int) -> bool:
    ours = setting.delivery(attempt) in doc.deliveries and Rule.DELIVERY in setting.rules
    return doc.status is Status.COMMITTED and ours


def put_skip(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Record in the document that this delivery has had its block."""
    yield from send(
        setting,
        state,
        who,
        won=lambda after: leave(setting, after, who, "success"),
        lost=lambda after: after.proc(who, at="read"),
        failed=lambda after: after.proc(who, at="done", answer="again", before=-1),
    )


def settle_failed(setting: Setting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Leave, since the dead attempt could not be settled; this one has no request in flight."""
    yield "goes away", leave(setting, state, who, "again")


def leave(setting: Setting, state: State, who: int, answer: str) -> State:
    """End without a claim: every request was answered, so delete the marker."""
    state = state.marker(setting.marker(attempt_of(who)), there=False)
    return state.proc(who, at="done", answer=answer, settling=None, before=-1)


def _too_late(setting: Setting, state: State, attempt: int) -> bool:
    return Rule.CLAIM_CLOCK in setting.rules and state.clocks[attempt] > 0
