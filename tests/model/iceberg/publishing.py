"""A block that stages in memory, and success(), which publishes, modelled on `session.py` and `Publication.java`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.record.document import Status
from safewriter.settle.recovery import Cause
from tests.model import claiming, recovery
from tests.model.block import after_deadline
from tests.model.gate import ends, raises, returns
from tests.model.iceberg.rules import IcebergRule
from tests.model.iceberg.table import Commit, Snapshot
from tests.model.requests import send
from tests.model.rules import Fault, Rule
from tests.model.setting import STATEMENTS, WATCHDOG, attempt_of
from tests.model.state import Request, Settling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.iceberg.setting import IcebergSetting
    from tests.model.state import Doc, State

__all__ = ["STEPS"]


def _mark(setting: IcebergSetting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Read the table before the claim: refuse a missing one, give an empty one a snapshot."""
    if not state.table.there:
        yield "there is no table: refused", state.proc(who, at="done", answer="again")
    elif not state.table.main and IcebergRule.BASE_FIRST in setting.rules:
        yield "the table has no snapshot", setting.to_base(state, who)
    else:
        yield from claiming.mark(setting, state, who)


def _base(setting: IcebergSetting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Add the first snapshot: a fence is a tag on a snapshot."""
    claimed = state.procs[who].held is not None

    def goes_on(after: State) -> State:
        return setting.staging(after, who) if claimed else after.proc(who, at="mark")

    def failed(after: State) -> State:
        return after.proc(who, at="failed") if claimed else after.proc(who, at="done", answer="again")

    yield from send(setting, state, who, won=goes_on, lost=goes_on, failed=failed, read_back=None)


def _data(setting: IcebergSetting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Stage a statement, also one that changes nothing: only unreferenced files leave the process."""
    attempt = attempt_of(who)
    yield "stages", returns(state.gate(attempt, version=state.gates[attempt].version + 1), who)


def _success(setting: IcebergSetting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Publish the staged statements, once."""
    attempt = attempt_of(who)
    if attempt == 0 and state.procs[WATCHDOG].at not in ("idle", "off"):
        yield from after_deadline(state, who, "success")
    elif state.gates[attempt].passed:
        yield "success(): has published before", state.proc(who, at="confirm")
    elif state.gates[attempt].version:
        yield "success()", state.proc(who, at="announce")
    else:
        yield "success(): nothing is staged: refused", state.proc(who, at="failed")


def _announce(setting: IcebergSetting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Announce the commit in the journal, for the settlers; then the JVM publishes."""
    attempt, me = attempt_of(who), state.procs[who]
    journal = Rule.JOURNAL_FIRST in setting.rules
    announced = state.gate(attempt, passed=True, status="in flight", journal=journal).proc(who, at="wait")
    publishing = announced.proc(STATEMENTS[attempt], at="publish", before=me.before, held=me.held)
    yield "announces its publication", publishing


def _publish(setting: IcebergSetting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Load the table and make the commit for it; repeated after each refused commit."""
    attempt, table, rules, refused = attempt_of(who), state.table, setting.rules, raises(state, who)
    name, epoch, main = setting.name(attempt), _held(state, who).epoch, table.main
    late = state.clocks[attempt] > 0 and IcebergRule.PUBLISH_IN_TIME in rules
    old = setting.is_old(table, attempt) and IcebergRule.FENCE_OUTLIVES in rules
    moved, alone = main != state.procs[who].before, state.gates[attempt].version == 1
    if IcebergRule.PUBLISH_ONCE in rules and setting.marked(table, attempt):
        yield "loads the table: its mark is there", ends(state, who, "confirm")
    elif not table.there:
        yield "loads the table: it is gone", refused
    elif IcebergRule.PUBLISH_UNFENCED in rules and name in table.fences:
        yield "loads the table: fenced", refused
    elif late or old:
        yield "is too late", refused
    elif moved and not alone and IcebergRule.AGAIN_ALONE in rules:
        yield "loads the table: others have committed", refused
    else:
        required = main if IcebergRule.PUBLISH_MAIN in rules else -1
        absent = name if IcebergRule.PUBLISH_UNFENCED in rules else -1
        adds, mark = Snapshot(attempt, main, epoch=epoch), (name, epoch) if IcebergRule.PUBLISH_MARK in rules else None
        commit = Commit("publish", required, absent, adds, mark, unseen=moved and not alone)
        request = Request("catalog", attempt, commit=commit)
        yield "loads the table, applies what is staged", state.proc(who, at="put publication", request=request)
        if moved and not setting.appends:
            yield "loads the table: Iceberg finds a conflict", refused


def _put(setting: IcebergSetting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Send the commit. The client may send it twice, and see only the refusal of the second copy."""
    attempt, request = attempt_of(who), state.procs[who].request
    assert request is not None
    yield from send(
        setting,
        state,
        who,
        won=lambda won: ends(won.gate(attempt, status="landed", journal=True), who, "confirm"),
        lost=lambda lost: lost.proc(who, at="publish"),
        failed=lambda doubt: ends(doubt.gate(attempt, status="unknown", journal=True), who, "confirm"),
        read_back=None,
    )
    if setting.may(state, Fault.LATE):
        yield "a copy of it stays in the air, it is sent again", state.spend()._replace(air=(*state.air, request))


def _confirm(setting: IcebergSetting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Trust only the table: without a witness there, settle the attempt."""
    if setting.marked(state.table, attempt_of(who)) and state.table.there:
        yield "success(): loads the table: it is there", _to_commit(state, who)
    else:
        job = Settling(Cause.SUCCESS, _held(state, who).epoch, False, -1, "look", "unanswered", cleans_later=True)  # noqa: FBT003
        yield "success(): loads the table: no mark", recovery.begin(state, who, job)


def _to_commit(state: State, who: int) -> State:
    held = _held(state, who)
    claims = (*held.claims[:-1], held.claims[-1]._replace(cleaned=held.epoch == 1))
    doc = held._replace(status=Status.COMMITTED, claims=claims, named=True)
    return state.proc(who, at="put success", request=Request("document", attempt_of(who), held.etag, doc=doc))


def _held(state: State, who: int) -> Doc:
    held = state.procs[who].held
    assert held is not None
    return held


STEPS = {
    "mark": _mark,
    "base": _base,
    "data": _data,
    "success": _success,
    "announce": _announce,
    "publish": _publish,
    "put publication": _put,
    "confirm": _confirm,
}
