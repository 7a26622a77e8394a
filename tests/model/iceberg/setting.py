"""A scenario on an Iceberg table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.model.iceberg.rules import IcebergRule
from tests.model.iceberg.table import FOREIGN, Commit, Snapshot, Table
from tests.model.rules import Rule
from tests.model.setting import STATEMENTS, Setting, attempt_of
from tests.model.state import Gate, Request, changed

if TYPE_CHECKING:
    from enum import Enum

    from tests.model.state import State

__all__ = ["IcebergSetting"]

_ALL: Final[frozenset[Enum]] = frozenset(Rule) | frozenset(IcebergRule)


@dataclass(frozen=True)
class IcebergSetting(Setting):
    """One scenario.

    `appends`: the block's statements only append. `unmarked`: their snapshots bear no mark, as those of statements that
    only drop files. `empty`: the table has no snapshot yet.
    """

    appends: bool = True
    unmarked: bool = False
    empty: bool = False
    rules: frozenset[Enum] = _ALL

    def start(self) -> State:
        """Return the state before anybody has begun."""
        table = Table(there=not self.absent)
        if not self.absent and not self.empty:
            table = Table(snapshots=(Snapshot(FOREIGN),), refs=(0, 0, 0, 1))
        state = super().start()
        doc = state.doc
        if doc is not None:
            claims = tuple(claim._replace(before=-1 if self.absent else table.main) for claim in doc.claims)
            doc = doc._replace(claims=claims)
        return state._replace(log=(), table=table, doc=doc)

    def version(self, state: State) -> int:
        """Return the snapshot that main shows, 0 if there is none, -1 if there is no table."""
        return state.table.main if state.table.there else -1

    def first_look(self, *, nothing_sent: bool) -> str:
        """Return the step in which a settler looks at the table for the first time; staging needs no fence."""
        return "I2"

    def opened(self, state: State, who: int) -> State:
        """Make the branch of an attempt that has claimed the write, if there is something to begin on."""
        attempt, before = attempt_of(who), state.procs[who].before
        # A branch may come late until there is one: then what comes after its drop is refused.
        gate = Gate("unknown" if before >= 0 else "none", journal=True, passed=True)
        state = state._replace(gates=changed(state.gates, attempt, gate))
        table, branch = state.table, self.branch(attempt)
        base = before if before in table.line(table.main) else table.main
        if before < 0 or not base:
            return self.staging(state, who)
        making = Commit(f"make branch {branch + 1}", ((branch, 0),), ((branch, base),), attempt=attempt)
        return state.proc(who, at="branch", request=Request("catalog", attempt, commit=making))

    @staticmethod
    def staging(state: State, who: int) -> State:
        """Let the block's statement begin."""
        me = state.procs[who]
        return state.proc(who, at="wait").proc(STATEMENTS[attempt_of(who)], at="data", before=me.before, held=me.held)

    def branch(self, attempt: int) -> int:
        """Return the branch that an attempt stages on."""
        return attempt if IcebergRule.OWN_BRANCH in self.rules else 0
