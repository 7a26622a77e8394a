"""A scenario on an Iceberg table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.model.iceberg.rules import IcebergRule
from tests.model.iceberg.table import FOREIGN, Commit, Snapshot, Table
from tests.model.rules import Rule
from tests.model.setting import STATEMENTS, Setting, attempt_of
from tests.model.state import Claim, Gate, Request, changed

if TYPE_CHECKING:
    from enum import Enum

    from tests.model.state import State

__all__ = ["IcebergSetting"]

_ALL: Final[frozenset[Enum]] = frozenset(Rule) | frozenset(IcebergRule)


@dataclass(frozen=True)
class IcebergSetting(Setting):
    """One scenario. `appends`: the block's statements only append. `empty`: the table has no snapshot yet."""

    appends: bool = True
    empty: bool = False
    rules: frozenset[Enum] = _ALL

    def start(self) -> State:
        """Return the initial state."""
        table = Table() if self.empty else Table(snapshots=(Snapshot(),), main=1)
        return super().start()._replace(log=(), table=table)

    def version(self, state: State) -> int:
        """Return 0: the model's claims on Iceberg need no version."""
        return 0

    def first_look(self, *, nothing_sent: bool) -> str:
        """Return the step in which a settler first reads the table."""
        return "S2"

    def opened(self, state: State, who: int) -> State:
        """Begin the block of an attempt that has claimed the write; its gate counts staged statements in `version`."""
        attempt = attempt_of(who)
        state = state._replace(gates=changed(state.gates, attempt, Gate(version=0)))
        return self.staging(state, who) if state.table.main else self.to_base(state, who)

    @staticmethod
    def to_base(state: State, who: int) -> State:
        """Prepare the commit of the table's first snapshot."""
        empty = Commit("add an empty snapshot", main=0, adds=Snapshot())
        return state.proc(who, at="base", request=Request("catalog", attempt_of(who), commit=empty))

    @staticmethod
    def staging(state: State, who: int) -> State:
        """Begin the block's statement on the current main."""
        state = state.proc(who, at="wait", before=state.table.main)
        return state.proc(STATEMENTS[attempt_of(who)], at="data", held=state.procs[who].held)

    def name(self, attempt: int) -> int:
        """Return the name of an attempt's mark and fence."""
        return attempt if IcebergRule.OWN_FENCE in self.rules else 0

    def marked(self, table: Table, attempt: int) -> int:
        """Return the epoch of an attempt's publication by its mark or snapshot, 0 if there is none."""
        marks = [epoch for name, epoch in table.marks if name == self.name(attempt)]
        if IcebergRule.SECOND_WITNESS in self.rules:
            known = (one for one in table.snapshots if one.attempt != FOREIGN and not one.gone)
            marks += [one.epoch for one in known if self.name(one.attempt) == self.name(attempt)]
        return max(marks, default=0)

    def is_old(self, table: Table, attempt: int) -> bool:
        """Return whether an attempt is older than six days: it may not publish, and has no verdict without a mark."""
        return attempt == 0 and table.age > 0

    def traced(self, state: State) -> tuple[Claim, ...] | None:
        """Return the claims that the table alone proves, () for none, None if it does not decide."""
        table, rules = state.table, self.rules
        if not table.there:
            return None if IcebergRule.GONE_UNDECIDED in rules else ()
        epoch, attempt = max((self.marked(table, attempt), attempt) for attempt in range(3))
        if not epoch and table.age and IcebergRule.MARK_AGE in rules:
            return None
        return (Claim(attempt, 0, cleaned=True),) * epoch
