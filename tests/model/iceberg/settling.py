"""The steps of settling, modelled on `safewriter/tables/iceberg/table.py`: of the table it writes only the fence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.record.document import Status
from tests.model.iceberg.rules import IcebergRule
from tests.model.iceberg.table import Commit
from tests.model.recovery import (
    cleaned,
    cleaning,
    dirty_ones,
    fails,
    goes,
    note,
    put_open,
    put_verdict,
    read,
    seen_by,
    to_note,
    unknown,
    verdict,
)
from tests.model.requests import send
from tests.model.setting import attempt_of
from tests.model.state import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.model.iceberg.setting import IcebergSetting
    from tests.model.state import Settling, State

__all__ = ["STEPS", "steps"]


def steps(setting: IcebergSetting, state: State, who: int) -> Iterator[tuple[str, State]]:
    """Return the steps that a settling process may take next."""
    settling = state.procs[who].settling
    assert settling is not None
    yield from STEPS[state.procs[who].at](setting, state, who, settling)


def _look(setting: IcebergSetting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    doc, table, rules = seen_by(settling), state.table, setting.rules
    name = setting.name(doc.owner)
    rolled = verdict(state, who, settling, doc._replace(status=Status.ROLLED_BACK))
    undecided = unknown(state, who, settling)
    if settling.nothing_sent:
        yield "S2 nothing was sent", rolled
    elif not table.there:
        yield "S2 loads the table: it is gone", undecided if IcebergRule.GONE_UNDECIDED in rules else rolled
    elif setting.marked(table, doc.owner):
        kept = doc._replace(status=Status.COMMITTED, named=True)
        yield "S2 loads the table: the mark is there", verdict(state, who, settling, kept)
    elif setting.is_old(table, doc.owner) and IcebergRule.MARK_AGE in rules:
        yield "S2 loads the table: the mark may be gone", undecided
    elif name in table.fences:
        yield "S2 loads the table: fenced, no mark", rolled
    elif IcebergRule.FENCE_FIRST not in rules:
        yield "S2 loads the table: no mark", rolled
    elif not table.main:
        yield "S2 loads the table: nothing to hold a fence", undecided
    else:
        fence = Commit(f"fence attempt {doc.owner + 1}", absent=name, fence=name)
        request = Request("catalog", attempt_of(who), commit=fence)
        yield "S2 loads the table: no mark, no fence", state.proc(who, at="S3", request=request)


def _fence(setting: IcebergSetting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    def won(after: State) -> State:
        if IcebergRule.LOOK_AGAIN in setting.rules:
            return after.proc(who, at="S2")
        return verdict(after, who, settling, seen_by(settling)._replace(status=Status.ROLLED_BACK))

    yield from send(setting, state, who, won=won, lost=goes(who, "S2"), failed=fails(who, settling), read_back=None)


def _clean(setting: IcebergSetting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    """Delete the markers; Iceberg's clean-up deletes no files."""
    doc = state.doc
    if doc is None or not dirty_ones(setting, doc, settling):
        yield "S6 reads the document: all is clean", cleaned(state, who, settling)
    else:
        job = cleaning(state, doc, settling)
        noted = to_note(setting, state.proc(who, settling=job), who, job, removed=False)
        yield "S6 reads the document", noted


STEPS: Final[dict[str, Callable[[IcebergSetting, State, int, Settling], Iterator[tuple[str, State]]]]] = {
    "S1": read,
    "S2": _look,
    "S3": _fence,
    "S4 rolling": put_open,
    "S4 close": put_verdict,
    "S6": _clean,
    "S6 note": note,
}
