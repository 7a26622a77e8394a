"""The scenarios to search, the counterexample of each rule, and the rules that no scenario needs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from safewriter.record.document import CommitPoint
from tests.model.rules import Fault, Rule
from tests.model.setting import Setting
from tests.model.state import REMOVES, TRANSACTION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from enum import Enum

S = TypeVar("S", bound=Setting)

__all__ = [
    "COUNTEREXAMPLES",
    "NEEDED_TOGETHER",
    "NOT_NEEDED",
    "SCENARIOS",
    "WIDE",
    "both_commit_points",
    "scenario",
    "without",
]

_ANYTHING: Final = frozenset({Fault.KILL, Fault.EXCEPTION, Fault.LATE, Fault.STALL, Fault.INTERRUPT})
_STATEMENTS: Final = frozenset({Fault.THREAD, Fault.IDLE, Fault.SECOND, Fault.AGAIN, Fault.INTERRUPT, Fault.LATE})


def _kinds(*kinds: Fault) -> frozenset[Fault]:
    return frozenset(kinds)


SCENARIOS: Final = {
    "nothing goes wrong, others commit": Setting(foreign=2, must_succeed=True, operator=True),
    "lost answers": Setting(_kinds(Fault.LOST), faults=2, foreign=1, must_succeed=True),
    "lost answers, new table": Setting(_kinds(Fault.LOST), faults=2, absent=True, must_succeed=True),
    "an exception or a late request": Setting(_kinds(Fault.LATE, Fault.EXCEPTION), faults=1, foreign=1),
    "a write that cannot be rebased": Setting(_ANYTHING, faults=1, foreign=2, operator=True, rebases=False),
    "killed, settled from outside": Setting(
        _kinds(Fault.LATE, Fault.EXCEPTION, Fault.KILL), faults=2, foreign=1, operator=True
    ),
    "killed, one retry": Setting(
        _kinds(Fault.LATE, Fault.EXCEPTION, Fault.KILL), faults=1, foreign=1, operator=True, retries=1
    ),
    "stands still beyond its grace": Setting(_kinds(Fault.STALL), faults=1, operator=True, deadline=True),
    "new table": Setting(_ANYTHING, faults=1, foreign=1, operator=True, absent=True),
    "statements that outlive, repeat, do nothing": Setting(_STATEMENTS, faults=2, operator=True),
    "a second statement": Setting(_kinds(Fault.SECOND), faults=1),
    "a statement that removes rows": Setting(
        _kinds(Fault.KILL, Fault.EXCEPTION, Fault.LATE), faults=2, foreign=1, operator=True, more=REMOVES
    ),
    "a statement with a transaction of its own": Setting(
        _kinds(Fault.KILL, Fault.EXCEPTION, Fault.LATE), faults=1, foreign=1, operator=True, more=TRANSACTION
    ),
    "refused statements, and a retry": Setting(_kinds(Fault.SECOND), faults=1, second=True, more=REMOVES),
    "refused statements": Setting(
        _kinds(Fault.SECOND, Fault.SWALLOW, Fault.STRANGER, Fault.INTERRUPT, Fault.KILL), faults=2, operator=True
    ),
    "a checkpoint bucket that is emptied": Setting(_kinds(Fault.EMPTY, Fault.KILL), faults=2, second=True),
    "an undone write that somebody restores": Setting(_kinds(Fault.RESTORE, Fault.EXCEPTION), faults=2, second=True),
    "lost versions": Setting(_kinds(Fault.KILL, Fault.GAP, Fault.EXCEPTION), faults=3, foreign=1, operator=True),
    "a document that is deleted while it is open": Setting(
        _kinds(Fault.KILL, Fault.EXCEPTION, Fault.GAP, Fault.FORGET), faults=3, foreign=1, operator=True, deadline=True
    ),
    "supervised": Setting(
        _kinds(Fault.KILL, Fault.KILL_CHILD, Fault.LATE, Fault.EXCEPTION), faults=1, supervised=True, deadline=True
    ),
    "supervised, statements in threads": Setting(
        _kinds(Fault.THREAD, Fault.SECOND, Fault.STRANGER, Fault.IDLE), faults=2, supervised=True
    ),
    "two attempts, one retry": Setting(_kinds(Fault.KILL, Fault.STALL), faults=1, second=True, retries=1),
    "two attempts": Setting(_kinds(Fault.LATE, Fault.STALL), faults=1, second=True),
    "two blocks of one name": Setting(
        _kinds(Fault.IDLE, Fault.KILL, Fault.STALL), faults=1, second=True, one_run=True, retries=1
    ),
    "an attempt with nothing to do, and another": Setting(_kinds(Fault.IDLE, Fault.KILL), faults=2, second=True),
    "a retry that stands still": Setting(
        _kinds(Fault.STALL, Fault.KILL), faults=1, second=True, deadline=True, operator=True, failed_before=True
    ),
}
"""`scripts/test` searches these completely, each with both commit points."""

WIDE: Final = {
    "refused statements, and a retry, two faults": Setting(
        _kinds(Fault.SECOND, Fault.SWALLOW, Fault.STRANGER, Fault.INTERRUPT), faults=2, second=True, more=REMOVES
    ),
    "a checkpoint bucket that is emptied, another writer": Setting(
        _kinds(Fault.EMPTY, Fault.KILL, Fault.EXCEPTION), faults=2, second=True, foreign=1
    ),
    "supervised, two faults": Setting(
        _ANYTHING | {Fault.KILL_CHILD}, faults=2, foreign=1, supervised=True, deadline=True
    ),
    "supervised, operator": Setting(
        _ANYTHING | {Fault.KILL_CHILD}, faults=1, foreign=1, supervised=True, deadline=True, operator=True
    ),
    "new table, two faults": Setting(_ANYTHING, faults=2, foreign=2, operator=True, absent=True),
    "killed, settled from outside, three faults": Setting(_ANYTHING, faults=3, foreign=1, operator=True),
    "two attempts, another writer": Setting(_ANYTHING, faults=1, foreign=1, second=True),
    "two attempts, two faults": Setting(_ANYTHING, faults=2, second=True),
    "two attempts, a new table": Setting(_ANYTHING, faults=1, second=True, absent=True),
    "two attempts and an operator": Setting(_kinds(Fault.LATE, Fault.STALL), faults=1, second=True, operator=True),
    "two attempts with deadlines": Setting(_ANYTHING, faults=1, second=True, deadline=True),
    "two attempts with deadlines, swept": Setting(
        _kinds(Fault.STALL, Fault.KILL), faults=1, second=True, deadline=True, operator=True
    ),
    "two blocks of one name, with deadlines": Setting(
        _ANYTHING | {Fault.IDLE}, faults=1, second=True, one_run=True, deadline=True
    ),
}
"""`scripts/model` searches these completely, in some minutes."""

COUNTEREXAMPLES: Final = {
    Rule.MARKER_FIRST: ("an exception or a late request", "a write is open, and no marker tells"),
    Rule.MARKER_OF_ITS_OWN: ("two attempts", "a write is open, and no marker tells"),
    Rule.MARKER_STAYS_IN_DOUBT: ("an exception or a late request", "a write is open, and no marker tells"),
    Rule.ONLY_THE_DEAD: ("two attempts", "attempt 1 is healthy, and attempt 2 settles it"),
    Rule.DELIVERY: ("two blocks of one name", "a second block is skipped, and its rows are lost"),
    Rule.CAS: ("killed, settled from outside", "the document goes from committed to rolling_back"),
    Rule.STORE_READ_BACK: ("lost answers", "a write is open, and no marker tells"),
    Rule.IDS_OF_ITS_OWN: ("two attempts, one retry", "the batch is in the table twice"),
    Rule.GATE_SHUT: ("statements that outlive, repeat, do nothing", "no change, but the table holds one"),
    Rule.GATE_FENCE: ("stands still beyond its grace", "rolled_back, but the table holds the batch"),
    Rule.GATE_BYTES: ("nothing goes wrong, others commit", "the block fails without need"),
    Rule.GATE_READ_BACK: ("lost answers", "the block fails without need"),
    Rule.GATE_OVER: ("statements that outlive, repeat, do nothing", "no change, but the table holds one"),
    Rule.GATE_ALONE: ("refused statements", "rolled_back, but rows of the block stay in the table"),
    Rule.GATE_UNDOABLE: (
        "a statement that removes rows, undone",
        "with a retry: a write counts without success(), and no undo could take it back",
    ),
    Rule.GATE_LANDED: ("a checkpoint bucket that is emptied", "with a retry: the batch is in the table twice"),
    Rule.UNDONE_AGAIN: (
        "an undone write that somebody restores",
        "with a retry: the batch is in the table twice",
    ),
    Rule.JOURNAL_FIRST: ("supervised", "rolled_back, but the table holds the batch"),
    Rule.CREATION_NOTE: ("new table", "rolled_back, but the table holds the batch"),
    Rule.SUCCESS_SHUTS: ("statements that outlive, repeat, do nothing", "no change, but the table holds one"),
    Rule.SUCCESS_WITNESS: (
        "statements that outlive, repeat, do nothing",
        "committed, but the table does not hold it",
    ),
    Rule.SUCCESS_WHOLE: ("refused statements", "committed, but rows of the block are missing"),
    Rule.REFUSAL_TOLD: ("supervised, statements in threads", "SUCCESS, but rows of the block are missing"),
    Rule.INCOMPLETE_STAYS: ("refused statements, and a retry", "a write that lacks rows is skipped"),
    Rule.DOUBT_IS_NOT_NOTHING: ("an exception or a late request", "rolled_back, but the table holds the batch"),
    Rule.KILL_FIRST: ("supervised", "rolled_back, but the table holds the batch"),
    Rule.OWN_EPOCH_ONLY: ("two attempts", "attempt 2 is healthy, and attempt 1 settles it"),
    Rule.COMES_BACK: (
        "stands still beyond its grace",
        "a writer that ended by itself leaves files that nobody will look for",
    ),
    Rule.FENCE: ("an exception or a late request", "rolled_back, but the table holds the batch"),
    Rule.GUARD_FENCE: ("an exception or a late request", "rolled_back, but the table holds the batch"),
    Rule.FENCE_DEAD_EPOCH: ("two attempts, one retry", "1 healthy retries do not bring the batch in"),
    Rule.LOOK_EPOCH: ("two attempts, undone", "committed, but the table does not hold it"),
    Rule.ROLLING_BACK_FIRST: ("killed, settled from outside", "committed, but the table does not hold it"),
    Rule.ROLLING_BACK_BINDS: ("killed, settled from outside", "committed, but the table does not hold it"),
    Rule.TARGETED_REVERT: ("an exception or a late request", "with a retry: a commit of somebody else is undone"),
    Rule.UNDO_REFUSED: ("an exception or a late request", "with a retry: what somebody else has rewritten is undone"),
    Rule.UNDO_ADDS: ("a statement that removes rows", "with a retry: what the undone commit had removed stays away"),
    Rule.UNDO_TRANSACTION: (
        "a statement with a transaction of its own",
        "2 healthy retries do not bring the batch in",
    ),
    Rule.CLEAN_TERMINAL: ("two attempts", "the document goes from in_progress to in_progress"),
    Rule.CLEAN_REFERRED: ("killed, settled from outside", "with a retry: a file of the table is deleted"),
    Rule.CLEAN_OWN_PREFIX: ("two attempts", "a file of the table is deleted"),
    Rule.MARKER_WAITS: ("stands still beyond its grace", "a write is open, and no marker tells"),
    Rule.ASK_TABLE: ("a document that is deleted while it is open", "rolled_back, but the table holds the batch"),
    Rule.CLEAN_GRACE: ("killed, settled from outside", "files are left behind, and no marker tells"),
}
"""Without the rule: the scenario and the promise that it breaks."""

NEEDED_TOGETHER: Final = {
    (Rule.GATE_CLOCK, Rule.GATE_SHUT): ("supervised, no other fault", "rolled_back, but the table holds the batch"),
    (Rule.GATE_ONCE, Rule.GATE_FENCE): ("a second statement", "the batch is in the table twice"),
    (Rule.SUCCESS_READS, Rule.GATE_BYTES): (
        "nothing goes wrong, others commit",
        "committed, but the table does not hold it",
    ),
}
"""Pairs of rules: the scenario and the promise that break only without both. The first is never needed alone."""

NOT_NEEDED: Final = {
    Rule.CLAIM_CLOCK: "a claim that is too late is settled as any other; the rule ends the block before it has begun",
    Rule.GATE_SLOT: "a rebase passes the gate again, and the fence is found there; the rule gives the refusal its name",
}
"""Rules whose absence breaks no promise within these bounds; docs/concepts/rules.md has the reasons to keep them."""

_SPECIAL: Final = {
    "two attempts, undone": Setting(_kinds(Fault.STALL), faults=1, second=True, commit_point=CommitPoint.SUCCESS),
    "a statement that removes rows, undone": Setting(
        _kinds(Fault.EXCEPTION), faults=1, more=REMOVES, commit_point=CommitPoint.SUCCESS
    ),
    "supervised, no other fault": Setting(supervised=True, deadline=True),
}


def scenario(name: str) -> Setting:
    """Return the scenario of this name."""
    return {**WIDE, **SCENARIOS, **_SPECIAL}[name]


def both_commit_points(settings: Mapping[str, S]) -> Iterator[tuple[str, S]]:
    """Yield each scenario with each commit point."""
    for name, setting in settings.items():
        for commit_point in CommitPoint:
            yield f"{name} ({commit_point.value})", replace(setting, commit_point=commit_point)


def without(setting: S, *rules: Enum) -> S:
    """Return the scenario without these rules."""
    return replace(setting, rules=setting.rules - set(rules))
