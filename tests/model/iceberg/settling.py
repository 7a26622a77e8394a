"""Publish, drop or take back, as `safewriter/tables/iceberg/table.py` does it: each step a look, or a request."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, NamedTuple

from safewriter.recovery import Cause
from safewriter.state import CommitPoint, Status
from tests.model.iceberg import leftovers
from tests.model.iceberg.catalog import AGAIN, PUBLISH
from tests.model.iceberg.rules import IcebergRule
from tests.model.iceberg.table import MAIN, NEW, Commit, Snapshot
from tests.model.recovery import change, fails, goes, note, put_verdict, read, seen_by, unknown, verdict
from tests.model.requests import send
from tests.model.setting import attempt_of
from tests.model.state import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.model.iceberg.setting import IcebergSetting
    from tests.model.iceberg.table import Table
    from tests.model.state import Doc, Settling, State

__all__ = ["STEPS", "Staged", "picking", "published", "staged", "steps"]


def steps(setting: IcebergSetting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Return what a settling process may do next."""
    settling = state.procs[who].settling
    assert settling is not None
    yield from STEPS[state.procs[who].at](setting, state, who, settling)


# -- what a look at the metadata tells, as `staging.py` ----------------------------------------------------------------


class Staged(NamedTuple):
    """What an attempt has staged, newest first, and whether the metadata knows all of it."""

    steps: tuple[int, ...]
    whole: bool


def staged(table: Table, snapshot: int, base: int) -> Staged:
    """Return the snapshots from one down to main or to where the attempt began."""
    main = table.line(table.main)
    found = tuple(itertools.takewhile(lambda one: one not in main and one != base, table.line(snapshot)))
    parent = table.at(found[-1]).parent if found else 0
    return Staged(found, parent == max(base, 0) or parent in main)


def published(setting: IcebergSetting, table: Table, doc: Doc) -> int:
    """Return the newest snapshot by which the write is in main, 0 for none."""
    return next((one for one in table.line(table.main) if _is_ours(setting, table, one, doc)), 0)


def _newest_ours(setting: IcebergSetting, table: Table, doc: Doc) -> tuple[int, ...]:
    """Return main's newest snapshots as far as they are the write's."""
    return tuple(itertools.takewhile(lambda one: _is_ours(setting, table, one, doc), table.line(table.main)))


def _is_ours(setting: IcebergSetting, table: Table, snapshot: int, doc: Doc) -> bool:
    rules, one = setting.rules, table.at(snapshot)
    picked = IcebergRule.OURS_BY_ID in rules and any(claim.picked == snapshot for claim in doc.claims)
    epoch = doc.epoch if IcebergRule.MARK_EPOCH in rules else len(table.refs)
    return picked or (IcebergRule.OURS_BY_MARK in rules and 0 < one.epoch <= epoch)


def picking(doc: Doc, status: Status, snapshot: int) -> Doc:
    """Return the document that names a snapshot."""
    return doc._replace(status=status, claims=(*doc.claims[:-1], doc.claims[-1]._replace(picked=snapshot)))


def _undo(setting: IcebergSetting, settling: Settling) -> bool:
    return settling.cause is Cause.EXCEPTION or setting.commit_point is CommitPoint.SUCCESS


# -- I2 and I3: look, and name what is to be published -----------------------------------------------------------------


def _look(setting: IcebergSetting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    doc, table, undo = seen_by(settling), state.table, _undo(setting, settling)
    done = published(setting, table, doc)
    rolled = doc._replace(status=Status.ROLLED_BACK)
    if not table.there and doc.before >= 0:
        yield "I2 loads the table: it was dropped", unknown(state, who, settling)
    elif not table.there:
        yield "I2 loads the table: there is none", verdict(state, who, settling, rolled)
    elif doc.status is Status.ROLLING_BACK:
        yield from _take_back(setting, state, who, settling)
    elif doc.status is Status.PUBLISHING or doc.claims[-1].picked:
        yield from _publish(setting, state, who, settling)
    elif done:
        if not undo:
            kept = picking(doc, Status.COMMITTED, done)
            yield f"I2 loads the table: snapshot {done} is in main, keep", verdict(state, who, settling, kept)
        elif IcebergRule.BACK_ANNOUNCED in setting.rules:
            back = change(state, who, "I3 put", doc, doc._replace(status=Status.ROLLING_BACK))
            yield f"I2 loads the table: snapshot {done} is in main, undo", back
        else:
            yield from _take_back(setting, state, who, settling)
    else:
        yield from _close(setting, state, who, settling, undo=undo)


def _close(
    setting: IcebergSetting, state: State, who: int, settling: Settling, *, undo: bool
) -> Iterator[tuple[str, State]]:
    doc, table = seen_by(settling), state.table
    head = table.refs[setting.branch(doc.owner)]
    rolled = doc._replace(status=Status.ROLLED_BACK)
    if doc.before < 0 and IcebergRule.WHOLE_HISTORY in setting.rules and not table.reaches(0):
        yield "I2 loads the table: its history is cut", unknown(state, who, settling)
    elif not staged(table, head, doc.before).steps:
        yield "I2 loads the table: nothing staged", verdict(state, who, settling, rolled)
    elif undo:
        yield f"I2 loads the table: snapshot {head} is to be dropped", verdict(state, who, settling, rolled)
    elif IcebergRule.PICK_FIRST in setting.rules:
        picked = change(state, who, "I3 put", doc, picking(doc, Status.PUBLISHING, head))
        yield f"I2 loads the table: picks snapshot {head}", picked
    else:
        named = settling._replace(seen=picking(doc, doc.status, head))
        yield from _publish(setting, state, who, named)


def _put_open(setting: IcebergSetting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    def won(after: State) -> State:
        doc = after.doc
        assert doc is not None
        if doc.status is Status.UNKNOWN:
            return after.proc(who, at="S1")
        return after.proc(who, at="I2", settling=settling._replace(seen=doc))

    yield from send(setting, state, who, won=won, lost=goes(who, "S1"), failed=fails(who, settling))


# -- I4: publish what is picked ----------------------------------------------------------------------------------------


def _publish(setting: IcebergSetting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    doc, table, rules = seen_by(settling), state.table, setting.rules
    branch, picked = setting.branch(doc.owner), doc.claims[-1].picked
    head, done = table.refs[branch], published(setting, table, doc)
    rolled = doc._replace(status=Status.ROLLED_BACK)
    if done:
        kept = picking(doc, Status.COMMITTED, done)
        yield f"I4 loads the table: snapshot {done} is in main", verdict(state, who, settling, kept)
        return
    if _undo(setting, settling) and IcebergRule.PICK_BINDS not in rules:
        yield "I4 loads the table: what is picked is to be dropped", verdict(state, who, settling, rolled)
        return
    if picked not in table.line(head):
        if IcebergRule.WHOLE_HISTORY in rules and not table.reaches(doc.before):
            yield "I4 loads the table: its history is cut", unknown(state, who, settling)
        elif head:
            yield "I4 loads the table: the branch holds another", _to_drop(state, who, branch, settling)
        else:
            yield "I4 loads the table: what is picked is gone", verdict(state, who, settling, rolled)
        return
    snapshot = picked if IcebergRule.PICKED_ONLY in rules else head
    ready = _publishing(setting, table, branch, snapshot, doc)
    if ready is not None:
        request = Request("catalog", attempt_of(who), commit=ready)
        yield f"I4 loads the table: {ready.what}", state.proc(who, at="I4 put", request=request, settling=settling)
    elif IcebergRule.CONFLICT_TAKES_BRANCH in rules:
        yield "I4 loads the table: conflict", _to_drop(state, who, branch, settling)
    else:
        yield "I4 loads the table: conflict", verdict(state, who, settling, rolled)


def _publishing(setting: IcebergSetting, table: Table, branch: int, snapshot: int, doc: Doc) -> Commit | None:
    """Return the commit that publishes a snapshot, None if there can be none."""
    rules, found = setting.rules, staged(table, snapshot, doc.before)
    main = ((MAIN, table.main),) if IcebergRule.PUBLISH_MAIN in rules else ()
    own = ((branch, table.refs[branch]),) if IcebergRule.PUBLISH_BRANCH in rules else ()
    away = ((branch, 0),) if IcebergRule.PUBLISH_TAKES_BRANCH in rules else ()
    if table.at(found.steps[-1]).parent == table.main:
        return Commit(PUBLISH, main + own, ((MAIN, snapshot), *away))
    appends = all(table.at(one).appends for one in found.steps) or IcebergRule.AGAIN_ONLY_APPENDS not in rules
    whole = found.whole or IcebergRule.AGAIN_WHOLE not in rules
    if not appends or not whole or not table.main:
        return None
    adds = Snapshot(doc.owner, doc.epoch, table.main, holds=found.steps)
    return Commit(AGAIN, main + own, ((MAIN, NEW), *away), adds)


def _to_drop(state: State, who: int, branch: int, settling: Settling) -> State:
    drop = leftovers.dropping(state.table, branch)
    request = Request("catalog", attempt_of(who), commit=drop)
    return state.proc(who, at="I4 drop", request=request, settling=settling)


def _put_publishing(setting: IcebergSetting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    yield from send(setting, state, who, won=goes(who, "I2"), lost=goes(who, "I2"), failed=fails(who, settling))


def _put_drop(setting: IcebergSetting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    def won(after: State) -> State:
        return verdict(after, who, settling, seen_by(settling)._replace(status=Status.ROLLED_BACK))

    yield from send(setting, state, who, won=won, lost=goes(who, "I2"), failed=fails(who, settling))


# -- I6: take back what went into main by itself -----------------------------------------------------------------------


def _take_back(setting: IcebergSetting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    doc, table, rules = seen_by(settling), state.table, setting.rules
    done, ours = published(setting, table, doc), _newest_ours(setting, table, doc)
    if not done and IcebergRule.WHOLE_HISTORY in rules and not table.reaches(doc.before):
        yield "I6 loads the table: its history is cut", unknown(state, who, settling)
        return
    if not done:
        rolled = doc._replace(status=Status.ROLLED_BACK)
        yield "I6 loads the table: nothing of ours in main", verdict(state, who, settling, rolled)
        return
    if not ours and IcebergRule.BACK_NEWEST in rules:
        kept = picking(doc, Status.COMMITTED, done)
        yield "I6 loads the table: others have written on top, undo refused", verdict(state, who, settling, kept)
        return
    required = ((MAIN, table.main),) if IcebergRule.BACK_MAIN in rules else ()
    back = Commit("set main back", required, ((MAIN, table.at(ours[-1] if ours else done).parent),))
    request = Request("catalog", attempt_of(who), commit=back)
    yield "I6 loads the table: set main back", state.proc(who, at="I4 put", request=request)


STEPS: Final[dict[str, Callable[[IcebergSetting, State, int, Settling], Iterator[tuple[str, State]]]]] = {
    "S1": read,
    "I2": _look,
    "I3 put": _put_open,
    "I4 put": _put_publishing,
    "I4 drop": _put_drop,
    "S4 rolling": _put_open,
    "S4 close": put_verdict,
    "S6": leftovers.clean,
    "S6 look": leftovers.look,
    "S6 drop": leftovers.put_drop,
    "S6 delete": leftovers.delete,
    "S6 forget": leftovers.put_forget,
    "S6 files": leftovers.delete_files,
    "S6 note": note,
}
