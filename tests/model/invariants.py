"""The promises that every state must keep, and the check that healthy retries succeed from every state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from safewriter.record.document import OPEN, Status
from tests.model.setting import GUARDS, RETRY, STATEMENTS, SUPERVISOR
from tests.model.state import REMOVES, STRAY, Proc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.setting import Setting
    from tests.model.state import State

__all__ = ["stuck", "untrue", "violation"]

_STEPS_MAX = 80


def violation(setting: Setting, state: State, *, final: bool) -> str | None:
    """Return the promise that a state breaks, or None."""
    return (
        answered(state)
        or _skipped(setting, state)
        or _missing(state)
        or _nobody_looks(setting, state)
        or _needless(setting, state, final=final)
    )


def untrue(state: State) -> str | None:
    """Check that the verdict agrees with the table, and that no commit or file of the table is lost."""
    return _untrue(state) or _lost(state)


def _untrue(state: State) -> str | None:
    live, doc = state.live(), state.doc
    shown = len(live) + len(state.restored())
    if shown > 1:
        return "the batch is in the table twice"
    if doc is None:
        return None
    if doc.status is Status.COMMITTED and shown != (0 if doc.no_change else 1):
        return "committed, but the table does not hold it" if not shown else "no change, but the table holds one"
    # A document covers what came after its first claim; an earlier one, now deleted, covered the rest.
    if doc.status is Status.ROLLED_BACK and any(slot > doc.claims[0].before for slot in live):
        return "rolled_back, but the table holds the batch"
    if doc.status is Status.ROLLED_BACK and any(entry.kind == STRAY for entry in state.log):
        return "rolled_back, but rows of the block stay in the table"
    return None


def answered(state: State) -> str | None:
    """Check that the document, if there is one, agrees with each SUCCESS that was answered."""
    began_anew = state.doc is not None and state.doc.claims[0].before >= min(state.live(), default=len(state.log))
    if state.doc is None or state.doc.status is Status.COMMITTED or began_anew:
        return None
    if any(proc.answer == "success" for proc in state.procs):
        return "SUCCESS was answered, and the document says something else"
    return None


def _skipped(setting: Setting, state: State) -> str | None:
    """Check that no block of a run is skipped because another block's rows are there: each has its own."""
    landed = {state.log[slot].attempt for slot in state.live()}
    if state.doc is not None and state.doc.no_change:
        landed.add(state.doc.owner)  # it declared that it has no rows
    for attempt in range(2):
        if setting.one_run and state.procs[GUARDS[attempt]].answer == "success" and attempt not in landed:
            return "a second block is skipped, and its rows are lost"
    return None


def _missing(state: State) -> str | None:
    """Check that a committed block is complete, or that its supervisor reports a statement refused after its end."""
    doc = state.doc
    if doc is None or doc.status is not Status.COMMITTED or doc.owner == RETRY:
        return None
    refused = state.gates[doc.owner].refused
    answers = [proc.answer == "success" for proc in state.procs]
    if answers[GUARDS[doc.owner]] and refused not in ("", "shut", "over", "landed"):
        return "committed, but rows of the block are missing"
    if answers[SUPERVISOR] and doc.owner == 0 and refused not in ("", "landed"):
        return "SUCCESS, but rows of the block are missing"
    if doc.incomplete and any(answers[who] for who in GUARDS if who != doc.owner):
        return "a write that lacks rows is skipped"
    return None


def _lost(state: State) -> str | None:
    for slot in {*state.live(), *state.restored()}:
        if state.files[state.log[slot].attempt] == "deleted":
            return "a file of the table is deleted"
    for at, entry in enumerate(state.log):
        if entry.kind == "revert" and any(e.kind == "rewrite" and e.slot == entry.slot for e in state.log[:at]):
            return "what somebody else has rewritten is undone"
        if entry.kind == "revert" and any(e.kind == "look" and e.slot == entry.slot for e in state.log[:at]):
            return "somebody else has left rows out for those that are undone"
        if entry.kind == "revert" and state.log[entry.slot].more == REMOVES:
            return "what the undone commit had removed stays away"
    return None


def _nobody_looks(setting: Setting, state: State) -> str | None:
    doc = state.doc
    if doc is not None and doc.status in OPEN and not state.markers[setting.marker(doc.owner)]:
        return "a write is open, and no marker tells"
    for attempt in range(2):
        over = all(state.procs[who].at in ("done", "dead", "off") for who in (GUARDS[attempt], STATEMENTS[attempt]))
        orphan = state.files[attempt] == "there" and not state.refers(attempt)
        if orphan and over and not state.markers[setting.marker(attempt)]:
            return "files are left behind, and no marker tells"
    return None


def _needless(setting: Setting, state: State, *, final: bool) -> str | None:
    if final and setting.must_succeed and state.procs[GUARDS[0]].answer != "success":
        return "the block fails without need"
    return None


class Steps(Protocol):
    """The parts of a model that a retry needs."""

    @property
    def setting(self) -> Setting:
        """The scenario."""
        ...

    def steps(self, state: State, who: int) -> Iterator[tuple[str, State]]:
        """Return the steps that a process may take next."""
        ...

    def untrue(self, state: State) -> str | None:
        """Return the promise about the table that a state breaks, or None."""
        ...


def stuck(model: Steps, state: State, known: dict[Any, str | None]) -> str | None:
    """Check that the setting's number of healthy retries brings the batch in after all processes die here."""
    doc = state.doc
    if state.gap or (doc.status is Status.COMMITTED if doc is not None else not state.log):
        return None
    key = (state.log, state.table, doc, state.air, state.files, state.notes)
    if key not in known:
        known[key] = _retried(model, state)
    return known[key]


def _retried(model: Steps, state: State) -> str | None:
    dead = (Proc("dead"),) * len(state.procs)
    alone = state._replace(procs=dead, foreign=0, faults=0, clocks=(2, 2, 0), expired=(True, True, False))
    for _ in range(model.setting.retries):
        alone = alone.proc(RETRY, at="mark", answer="", held=None, settling=None, request=None, before=-1)
        alone = alone._replace(clocks=(2, 2, 0), expired=(True, True, False))
        for _ in range(_STEPS_MAX):
            runs = next(
                (
                    who
                    for who in (STATEMENTS[RETRY], RETRY)
                    if alone.procs[who].at not in ("off", "dead", "done", "wait")
                ),
                None,
            )
            if runs is None:
                break
            alone = next(iter(model.steps(alone, runs)))[1]
        if alone.procs[RETRY].answer == "success":
            break
        alone = alone._replace(expired=(True,) * 3)
    wrong = alone.broken or model.untrue(alone) or answered(alone)
    if wrong:
        return f"with a retry: {wrong}"
    # With commit_point=success the gate refuses a commit that no undo could take back: the script has to be changed.
    if alone.procs[RETRY].answer == "success" or alone.gates[RETRY].refused == "undo":
        return None
    return f"{model.setting.retries} healthy retries do not bring the batch in"
