"""success() on a staged write, as `safewriter/ending.py` and `IcebergTable.confirm` do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.recovery import Cause
from safewriter.state import Status
from tests.model import recovery
from tests.model.block import after_deadline, answers
from tests.model.iceberg.rules import IcebergRule
from tests.model.iceberg.settling import picking, published, staged
from tests.model.requests import send
from tests.model.setting import WATCHDOG, attempt_of
from tests.model.state import Request, Settling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.iceberg.setting import IcebergSetting
    from tests.model.state import Doc, State

__all__ = ["check", "never_began", "put_success", "success"]


def success(setting: IcebergSetting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Look at the table: what is staged is picked; what the block has created counts by itself."""
    attempt = attempt_of(who)
    if attempt == 0 and state.procs[WATCHDOG].at not in ("idle", "off"):
        yield from after_deadline(state, who, "success")
        return
    held = state.procs[who].held
    assert held is not None
    confirmed = _confirmed(setting, state, held)
    if confirmed is None:
        yield "success(): the write is not what it should be", state.proc(who, at="failed")
        return
    request = Request("document", attempt, held.etag, doc=confirmed)
    what = "no change" if confirmed.no_change else f"snapshot {confirmed.claims[-1].picked}"
    yield f"success(): loads the table: {what}", state.proc(who, at="put success", request=request)


def _confirmed(setting: IcebergSetting, state: State, held: Doc) -> Doc | None:
    table, head = state.table, state.table.refs[setting.branch(held.owner)]
    if table.dropped:
        return None
    done, found = published(setting, table, held), staged(table, head, held.before).steps
    if not table.there or (not done and not found):
        return held._replace(status=Status.COMMITTED, no_change=True)
    if not done:
        return picking(held, Status.PUBLISHING, head)
    earlier = IcebergRule.EARLIER_COUNTS in setting.rules and 0 < table.at(done).epoch < held.epoch
    if not earlier and (held.before >= 0 or found):
        return None
    return picking(held, Status.COMMITTED, done)


def put_success(setting: IcebergSetting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Say committed, or which snapshot it is to be, and publish that."""

    def won(after: State) -> State:
        doc = after.doc
        assert doc is not None
        if doc.status is Status.COMMITTED:
            return answers(after, who, "success", "tidy")
        job = Settling(Cause.SUCCESS, doc.epoch, nothing_sent=False, quiet=-1, then="check", failed="unanswered")
        return recovery.begin(after, who, job._replace(cleans_later=True))

    yield from send(
        setting,
        state,
        who,
        won=won,
        lost=lambda lost: lost.proc(who, at="look"),
        failed=lambda doubt: doubt.proc(who, at="unanswered"),
    )


def check(setting: IcebergSetting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Believe what the settled document says."""
    doc = state.doc
    assert doc is not None
    if doc.status is Status.COMMITTED and doc.owner == attempt_of(who):
        yield "success(): settled as committed", answers(state, who, "success", "tidy")
    else:
        yield f"success(): settled as {doc.status.value}", state.proc(who, at="failed", settling=None)


def never_began(setting: IcebergSetting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Answer for a block that could not be opened."""
    failed = answers(state, who, "failure", "done")
    yield "answers: failed, the block never began", failed.proc(who, held=None, before=-1)
