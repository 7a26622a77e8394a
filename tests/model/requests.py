"""Conditional writes to S3, and their outcomes: won, lost, or unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.record.document import LEGAL_MOVES, Status
from tests.model.rules import Fault, Rule
from tests.model.setting import GUARDS
from tests.model.state import Request, State, changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.model.setting import Setting
    from tests.model.state import Doc

__all__ = ["apply", "can_ever_fit", "fits", "name_of_request", "send"]


def fits(setting: Setting, state: State, request: Request) -> bool:
    """Return whether S3 would apply a request now."""
    if request.commit is not None:
        return state.table.fits(request.commit)
    if request.kind == "log":
        return request.place == len(state.log)
    if request.kind == "note":
        return not state.notes[request.place - 1]
    if request.kind == "document":
        if request.place and Rule.CAS not in setting.rules:
            return True
        return request.place == (state.doc.etag if state.doc is not None else 0)
    return True


def can_ever_fit(setting: Setting, state: State, request: Request) -> bool:
    """Return whether a request in the air may ever be applied."""
    if request.commit is not None:
        return state.table.may_ever_fit(request.commit, settable=setting.may(state, Fault.SET_BACK))
    return fits(setting, state, request) or (request.kind == "log" and request.place > len(state.log))


def apply(state: State, request: Request) -> State:
    """Return the state after S3 applies a request."""
    if request.entry is not None:
        return state._replace(log=(*state.log, request.entry))
    if request.commit is not None:
        table, wrong = state.table.after(request.commit)
        return state._replace(table=table, broken=state.broken or wrong)
    if request.doc is not None:
        return _written(state, request.doc)
    if request.kind == "note":
        return state._replace(notes=changed(state.notes, request.place - 1, request.note))
    # Only the orphans command deletes files written after the grace or after success().
    over = state.clocks[request.attempt] == 2 or state.procs[GUARDS[request.attempt]].answer == "success"
    late = "stray" if over else "there"
    return state._replace(files=changed(state.files, request.attempt, late))


def _written(state: State, doc: Doc) -> State:
    before = state.doc
    if before is None:
        return state._replace(doc=doc._replace(etag=1))
    broken = state.broken
    if (before.status, doc.status) not in LEGAL_MOVES:
        broken = f"the document goes from {before.status.value} to {doc.status.value}"
    elif doc.epoch != before.epoch + (doc.status is Status.IN_PROGRESS):
        broken = f"the epoch goes from {before.epoch} to {doc.epoch}"
    return state._replace(doc=doc._replace(etag=before.etag + 1), broken=broken)


def send(
    setting: Setting,
    state: State,
    who: int,
    *,
    won: Callable[[State], State],
    lost: Callable[[State], State],
    failed: Callable[[State], State],
    read_back: Rule | None = Rule.STORE_READ_BACK,
) -> Iterator[tuple[str, State]]:
    """Send a process's request; `won`, `lost` (412) or `failed` makes the next state."""
    request = state.procs[who].request
    assert request is not None
    sent = state.proc(who, request=None)
    what = name_of_request(request)
    if not fits(setting, state, request):
        yield f"{what}: refused, 412", lost(sent)
        if Rule.IDS_OF_ITS_OWN not in setting.rules and _reads_the_same(state.doc, request.doc):
            yield f"{what}: refused, 412, and a copy of this process has put equal bytes", won(sent)
        return
    yield what, won(apply(sent, request))
    # A writer that reads back treats a lost response like a received one.
    if setting.may(state, Fault.LOST) and read_back not in setting.rules:
        yield f"{what}: lands, the answer is lost, the repetition gets 412", lost(apply(sent, request).spend())
    if setting.may(state, Fault.LATE):
        yield (
            f"{what}: stays in the air, the client sees an error",
            failed(sent._replace(air=(*sent.air, request)).spend()),
        )


def _reads_the_same(stored: Doc | None, sent: Doc | None) -> bool:
    """Return whether two documents differ by nothing but the processes that wrote them."""
    return stored is not None and sent is not None and (stored.status, stored.epoch) == (sent.status, sent.epoch)


def name_of_request(request: Request) -> str:
    """Return a request's readable name."""
    if request.entry is not None:
        entry = request.entry
        detail = f" epoch {entry.epoch}" if entry.epoch else f" of {entry.slot}" if entry.slot >= 0 else ""
        return f"PUT version {request.place}: {entry.kind}{detail}"
    if request.doc is not None:
        return f"PUT document: {request.doc.status.value}, epoch {request.doc.epoch}"
    if request.commit is not None:
        return f"catalog: {request.commit.what}"
    return f"PUT {request.note or request.kind}"
