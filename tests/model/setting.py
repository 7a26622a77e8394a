"""The parameters of a search: processes, faults, and the rules that hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from safewriter.record.document import CommitPoint, Status
from tests.model.rules import Fault, Rule
from tests.model.state import FOREIGN, Claim, Doc, Entry, Gate, Proc, State, changed

if TYPE_CHECKING:
    from enum import Enum

__all__ = ["GUARDS", "OPERATOR", "RETRY", "STATEMENTS", "SUPERVISOR", "WATCHDOG", "Setting", "attempt_of", "name_of"]

RETRY: Final = 2
"""The attempt that the liveness check adds; the exploration has attempts 0 and 1."""
GUARDS: Final = (0, 1, 2)
STATEMENTS: Final = (3, 4, 5)
WATCHDOG: Final = 6
SUPERVISOR: Final = 7
OPERATOR: Final = 8
_NAMES: Final = (
    *("writer 1", "writer 2", "retry"),
    *("statement 1", "statement 2", "statement of the retry"),
    *("watchdog 1", "supervisor 1", "operator"),
)


def attempt_of(who: int) -> int:
    """Return the attempt that a process belongs to, -1 for the operator."""
    if who == OPERATOR:
        return -1
    return who % 3 if who < WATCHDOG else 0


def name_of(who: int) -> str:
    """Return a process's name in a trace."""
    return _NAMES[who]


@dataclass(frozen=True)
class Setting:
    """One scenario.

    `faults`: the maximum number of faults, of the kinds `kinds`. `foreign`: the maximum number of other writers'
    commits. `second`: a second attempt of the run may begin at any time. `supervised`: attempt 1 has a watchdog and a
    supervisor. `operator`: an operator or the sweeper settles and cleans up. `deadline`: attempts have one. `absent`:
    there is no table yet. `rebases`: the write is blind, so Delta rebases it. `retries`: this number of healthy retries
    must succeed from any state. `one_run`: the second attempt is no retry but a second block of the same name in one
    run, with its own rows. `must_succeed`: the scenario's faults excuse no failure. `failed_before`: attempt 1 is
    already rolled back and clean. `more`: what the block's statement does besides adding files.
    """

    kinds: frozenset[Fault] = frozenset()
    faults: int = 0
    foreign: int = 0
    commit_point: CommitPoint = CommitPoint.WRITE
    second: bool = False
    supervised: bool = False
    operator: bool = False
    deadline: bool = False
    absent: bool = False
    rebases: bool = True
    retries: int = 2
    must_succeed: bool = False
    failed_before: bool = False
    one_run: bool = False
    more: str = ""
    rules: frozenset[Enum] = frozenset(Rule)

    def start(self) -> State:
        """Return the initial state."""
        off = Proc()
        begin = Proc("mark")
        idle = Proc("idle")
        return State(
            log=() if self.absent else (Entry(FOREIGN),),
            doc=Doc(Status.ROLLED_BACK, (Claim(0, 0, cleaned=True),), etag=1) if self.failed_before else None,
            notes=("",) * 4,
            markers=(False,) * 3,
            files=("none",) * 3,
            gates=(Gate(),) * 3,
            clocks=(0,) * 3,
            expired=(False,) * 3,
            procs=(
                *(Proc("done") if self.failed_before else begin, begin if self.second else off, off),
                *(off, off, off),
                *(idle if self.supervised else off, idle if self.supervised else off),
                idle if self.operator else off,
            ),
            air=(),
            foreign=self.foreign,
            faults=self.faults,
        )

    def version(self, state: State) -> int:
        """Return the table's latest version, -1 if there is no table."""
        return len(state.log) - 1

    def opened(self, state: State, who: int) -> State:
        """Open the gate of an attempt that has claimed the write, and let its statement begin."""
        attempt, me = attempt_of(who), state.procs[who]
        gated = state._replace(gates=changed(state.gates, attempt, Gate()))
        return gated.proc(who, at="wait").proc(STATEMENTS[attempt], at="data", before=me.before, held=me.held)

    def delivery(self, attempt: int) -> int:
        """Return the delivery of the run that an attempt belongs to."""
        return 0 if self.one_run and attempt < RETRY else attempt

    def first_look(self, *, nothing_sent: bool) -> str:
        """Return the step in which a settler first reads the table."""
        return "S3" if nothing_sent else "S2"

    def traced(self, state: State) -> tuple[Claim, ...] | None:
        """Return the claims that the table alone proves, () for none, None if it does not decide."""
        live = state.live()
        if state.gap or (live and self.commit_point is CommitPoint.SUCCESS):
            return None
        if not live:
            return ()
        ours = state.log[live[0]]
        return (Claim(ours.attempt, live[0] - 1, cleaned=True),) * ours.epoch

    def marker(self, attempt: int) -> int:
        """Return the number of the marker that an attempt puts and removes."""
        return attempt if Rule.MARKER_OF_ITS_OWN in self.rules else 0

    def may(self, state: State, fault: Fault) -> bool:
        """Return whether a fault of this kind may happen now."""
        return state.faults > 0 and fault in self.kinds
