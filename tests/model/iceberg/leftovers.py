"""Clean-up, as `safewriter/tables/iceberg/leftovers.py` does it: branches first, then snapshots, then files by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.state import Status
from tests.model.iceberg.rules import IcebergRule
from tests.model.iceberg.table import FOREIGN, Commit
from tests.model.recovery import cleaned, cleaning, dirty_ones, goes, seen_by, to_note
from tests.model.requests import send
from tests.model.setting import attempt_of
from tests.model.state import Request, changed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.iceberg.setting import IcebergSetting
    from tests.model.iceberg.table import Table
    from tests.model.state import Claim, Doc, Settling, State

__all__ = ["clean", "delete", "delete_files", "dropping", "look", "put_drop", "put_forget", "unled"]


def clean(setting: IcebergSetting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    """Read the document: whose leavings are looked for."""
    doc = state.doc
    dirty = [] if doc is None else dirty_ones(setting, doc, settling)
    if doc is None or not dirty:
        yield "S6 reads the document: all is clean", cleaned(state, who, settling)
    else:
        whose = ", ".join(str(attempt + 1) for attempt in dirty)
        seen = cleaning(state, doc, settling)
        yield f"S6 reads the document: cleans up after {whose}", state.proc(who, at="S6 look", settling=seen)


def _names(setting: IcebergSetting, settling: Settling) -> list[int]:
    """Return the attempts of which everything is looked for: the dirty ones, and those before them."""
    doc = seen_by(settling)
    if IcebergRule.CLEAN_EARLIER not in setting.rules:
        return dirty_ones(setting, doc, settling)
    return [claim.attempt for claim in _until(setting, doc, settling)]


def _until(setting: IcebergSetting, doc: Doc, settling: Settling) -> tuple[Claim, ...]:
    dirty = dirty_ones(setting, doc, settling)
    return doc.claims[: 1 + max(at for at, claim in enumerate(doc.claims) if claim.attempt in dirty)]


def dropping(table: Table, branch: int) -> Commit:
    """Return the commit that takes a branch away."""
    return Commit(f"drop branch {branch + 1}", ((branch, table.refs[branch]),), ((branch, 0),))


def unled(setting: IcebergSetting, table: Table, names: list[int], doc: Doc) -> tuple[int, ...]:
    """Return the attempts' snapshots to which nothing leads."""
    rules = setting.rules
    tips = list(table.refs) if IcebergRule.CLEAN_UNLED in rules else []
    if IcebergRule.CLEAN_REPEATED in rules:
        tips += [source for one in table.snapshots if not one.gone for source in one.holds]
    if IcebergRule.CLEAN_COMMITTED in rules and doc.status is Status.COMMITTED:
        tips.append(doc.claims[-1].picked)
    used = {one for tip in tips for one in table.line(tip)}
    return tuple(
        number
        for number, one in enumerate(table.snapshots, 1)
        if one.attempt != FOREIGN and one.attempt in names and not one.gone and number not in used
    )


def look(setting: IcebergSetting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    """Load the table, and see what is to go next."""
    table, names = state.table, _names(setting, settling)
    if table.dropped and any(claim.before >= 0 for claim in seen_by(settling).claims):
        yield "S6 loads the table: it was dropped", cleaned(state, who, settling)
        return
    names = names if table.there else []  # what was to be created lies where no catalog tells
    branch = next((setting.branch(one) for one in names if table.refs[setting.branch(one)]), None)
    if branch is not None:
        request = Request("catalog", attempt_of(who), commit=dropping(table, branch))
        yield f"S6 loads the table: branch {branch + 1} is there", state.proc(who, at="S6 drop", request=request)
        return
    doomed = unled(setting, table, names, seen_by(settling))
    if doomed:
        forget = Commit("forget snapshots", tuple(enumerate(table.refs)), forgets=doomed)
        after = settling._replace(doomed=doomed)
        yield (
            f"S6 loads the table: nothing leads to {doomed}",
            state.proc(who, at="S6 delete", settling=after, request=Request("catalog", attempt_of(who), commit=forget)),
        )
        return
    unstaged = tuple(one for one in names if state.files[one] in ("there", "stray"))
    job = settling._replace(spared=unstaged, ours=len(table.snapshots))
    if any(table.refs[setting.branch(claim.attempt)] for claim in _until(setting, seen_by(settling), settling)):
        state = state._replace(broken="what an earlier attempt has left is not looked for")
    yield "S6 loads the table: nothing staged", state.proc(who, at="S6 files", settling=job)


def put_drop(setting: IcebergSetting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    """Take a branch away, and look again."""
    yield from _sent(setting, state, who, settling)


def delete(setting: IcebergSetting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    """Delete what snapshots brought in to which nothing led."""
    without = state._replace(table=state.table.without_files(settling.doomed))
    yield f"S6 deletes the files of {settling.doomed}", without.proc(who, at="S6 forget")


def put_forget(setting: IcebergSetting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    """Take snapshots out of the metadata, and look again."""
    yield from _sent(setting, state, who, settling)


def _sent(setting: IcebergSetting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    again = goes(who, "S6 look")
    yield from send(setting, state, who, won=again, lost=again, failed=lambda doubt: cleaned(doubt, who, settling))


def delete_files(setting: IcebergSetting, state: State, who: int, settling: Settling) -> Iterator[tuple[str, State]]:
    """Delete by their names what no snapshot held when the table was loaded, and say who is clean."""
    files = state.files
    for attempt in settling.spared:
        if files[attempt] in ("there", "stray"):
            files = changed(files, attempt, "deleted")
    since = enumerate(state.table.snapshots[settling.ours :], settling.ours + 1)
    late = tuple(number for number, one in since if one.attempt in settling.spared and not one.holds)
    after = state._replace(files=files, table=state.table.without_files(late))
    what = "S6 deletes files" if settling.spared else "S6 finds no files"
    yield what, to_note(setting, after, who, settling, removed=False)
