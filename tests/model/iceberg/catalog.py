"""What a commit of ours does to the world, and which promise it breaks in doing so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safewriter.state import OPEN
from tests.model.iceberg.table import FOREIGN
from tests.model.setting import GUARDS, STATEMENTS

if TYPE_CHECKING:
    from tests.model.iceberg.table import Commit, Table
    from tests.model.state import State

__all__ = ["AGAIN", "CREATE", "PUBLISH", "committed"]

PUBLISH: Final = "publish"
AGAIN: Final = "publish as an append of its own"
CREATE: Final = "create the table"


def committed(state: State, commit: Commit) -> State:
    """Return the state after a commit that fits."""
    before, after = state.table, state.table.after(commit)
    broken = state.broken or _broken(state, before, after, commit)
    if commit.attempt != FOREIGN and _is_stray(state, commit):
        after = after._replace(strays=tuple(sorted({*after.strays, commit.attempt})))
    if commit.adds is not None and not commit.adds.holds:  # its files have their snapshot now
        attempt = commit.adds.attempt
        if state.files[attempt] == "deleted":
            after = after.without_files((len(after.snapshots),))
        files = (*state.files[:attempt], "none", *state.files[attempt + 1 :])
        state = state._replace(files=files)
        if commit.creates:
            after = after._replace(late=_is_late(state, attempt))
    return state._replace(table=after, broken=broken)


def _broken(state: State, before: Table, after: Table, commit: Commit) -> str:
    lost = set(before.ancestry(before.main)) - set(after.ancestry(after.main))
    if any(before.at(one).attempt == FOREIGN for one in lost):
        return "a commit of somebody else is lost"
    if commit.what == AGAIN and not all(before.at(one).appends for one in after.shown(after.main)):
        return "what is no append is applied to rows that it has not seen"
    if commit.what in (PUBLISH, AGAIN) and (state.doc is None or state.doc.status not in OPEN):
        return "what is settled is published"
    return ""


def _is_stray(state: State, commit: Commit) -> bool:
    """Tell whether a commit comes after its attempt's grace, or success, or makes a branch again that was dropped."""
    attempt = commit.attempt
    made = state.gates[attempt].status == "none"
    again = made and commit.adds is not None and any(not head for _, head in commit.requires)
    return again or state.clocks[attempt] == 2 or state.procs[GUARDS[attempt]].answer == "success"


def _is_late(state: State, attempt: int) -> bool:
    """Tell whether somebody may have looked for a creation before it comes: nothing can keep it out."""
    doc, waits = state.doc, state.procs[STATEMENTS[attempt]].at == "stage"
    is_open = doc is not None and doc.status in OPEN and doc.owner == attempt
    looked = any(proc.settling for proc in state.procs) or any(request.kind == "document" for request in state.air)
    return looked or not waits or not is_open
