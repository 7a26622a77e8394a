"""A block's statements, which stage on a branch, and the branch itself: as Spark and `session.py` do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.recovery import Cause
from tests.model import recovery
from tests.model.gate import raises, returns
from tests.model.iceberg.catalog import CREATE
from tests.model.iceberg.table import MAIN, NEW, Commit, Snapshot
from tests.model.requests import apply, send
from tests.model.rules import Fault
from tests.model.setting import attempt_of
from tests.model.state import Request, Settling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.iceberg.setting import IcebergSetting
    from tests.model.state import State

__all__ = ["data", "make_branch", "stage"]


def make_branch(setting: IcebergSetting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Make the branch; a block that cannot be opened is settled at once."""

    def never_began(after: State, quiet: int) -> State:
        job = Settling(Cause.EXCEPTION, after.procs[who].held.epoch, False, quiet, "never", "never")  # type: ignore[union-attr]  # noqa: FBT003
        return recovery.begin(after, who, job)

    yield from send(
        setting,
        state,
        who,
        won=lambda won: setting.staging(won.gate(attempt_of(who), status="none"), who),
        lost=lambda lost: never_began(lost, attempt_of(who)),
        failed=lambda doubt: never_began(doubt, -1),  # it may come yet
    )


def data(setting: IcebergSetting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Spark loads the table, tasks put their files."""
    if setting.may(state, Fault.IDLE):
        yield "changes nothing, makes no commit", returns(state.spend(), who)
    creates = state.procs[who].before < 0
    if creates and state.table.there:
        yield "finds the table that it was to create", raises(state, who)
        return
    # What is written for a table that never comes lies where no catalog tells.
    put = state if creates else apply(state, Request("data", attempt_of(who)))
    yield "puts its files", put.proc(who, at="stage", request=_request(setting, put, who))


def stage(setting: IcebergSetting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Commit; what is refused is done again on what the catalog shows now, if it only appends."""
    request = state.procs[who].request
    assert request is not None
    assert request.commit is not None
    created = request.commit.creates

    def lost(after: State) -> State:
        if not setting.appends or created or not after.table.there:
            return raises(after, who)
        return after.proc(who, at="stage", request=_request(setting, after, who))

    yield from send(
        setting,
        state,
        who,
        won=lambda won: returns(won, who),
        lost=lost,
        failed=lambda doubt: raises(doubt, who),
    )


def _request(setting: IcebergSetting, state: State, who: int) -> Request:
    attempt, me, table = attempt_of(who), state.procs[who], state.table
    assert me.held is not None
    ours = Snapshot(attempt, 0 if setting.unmarked else me.held.epoch, appends=setting.appends)
    branch = setting.branch(attempt)
    head = table.refs[branch]
    if me.before < 0:
        commit = Commit(CREATE, sets=((MAIN, NEW),), adds=ours, creates=True, attempt=attempt)
    else:  # where the branch is missing, Spark makes one on what main shows
        adds = ours._replace(parent=head or table.main)
        commit = Commit(f"stage on branch {branch + 1}", ((branch, head),), ((branch, NEW),), adds, attempt=attempt)
    return Request("catalog", attempt, commit=commit)
