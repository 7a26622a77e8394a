"""The scenarios on an Iceberg table that are searched to their end, and what each rule prevents there."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from safewriter.state import CommitPoint
from tests.model.iceberg.rules import IcebergRule
from tests.model.iceberg.setting import IcebergSetting
from tests.model.rules import Fault

__all__ = ["COUNTEREXAMPLES", "SCENARIOS", "WIDE", "scenario"]


def _kinds(*kinds: Fault) -> frozenset[Fault]:
    return frozenset(kinds)


_ANYTHING: Final = _kinds(Fault.KILL, Fault.EXCEPTION, Fault.LATE, Fault.STALL, Fault.INTERRUPT)
_STATEMENTS: Final = _kinds(Fault.THREAD, Fault.IDLE, Fault.SECOND, Fault.AGAIN, Fault.INTERRUPT, Fault.LATE)

SCENARIOS: Final = {
    "iceberg, nothing goes wrong, others commit": IcebergSetting(foreign=2, must_succeed=True, operator=True),
    "iceberg, lost answers": IcebergSetting(_kinds(Fault.LOST), faults=2, foreign=1, must_succeed=True),
    "iceberg, anything, an append": IcebergSetting(_ANYTHING, faults=1, foreign=1, operator=True),
    "iceberg, anything, no append, no marks": IcebergSetting(
        _ANYTHING, faults=1, foreign=1, operator=True, appends=False, unmarked=True
    ),
    "iceberg, anything, an empty table": IcebergSetting(_ANYTHING, faults=1, foreign=1, operator=True, empty=True),
    "iceberg, anything, a creation": IcebergSetting(_ANYTHING, faults=1, foreign=1, operator=True, absent=True),
    "iceberg, main is set back": IcebergSetting(_kinds(Fault.LATE, Fault.SET_BACK), faults=2, foreign=1, operator=True),
    "iceberg, main is set back, no append": IcebergSetting(
        _kinds(Fault.LATE, Fault.SET_BACK), faults=2, foreign=1, operator=True, appends=False
    ),
    "iceberg, retention": IcebergSetting(
        _kinds(Fault.KILL, Fault.EXPIRE, Fault.AGE), faults=2, foreign=1, operator=True
    ),
    "iceberg, the table is dropped, and registered again": IcebergSetting(
        _kinds(Fault.GAP, Fault.EXCEPTION, Fault.KILL), faults=2, operator=True
    ),
    "iceberg, retention, two statements": IcebergSetting(
        _kinds(Fault.SECOND, Fault.AGE), faults=2, foreign=1, operator=True
    ),
    "iceberg, statements that outlive, repeat, do nothing": IcebergSetting(_STATEMENTS, faults=2, operator=True),
    "iceberg, stands still beyond its grace": IcebergSetting(
        _kinds(Fault.STALL), faults=1, operator=True, deadline=True
    ),
    "iceberg, supervised": IcebergSetting(
        _kinds(Fault.KILL, Fault.KILL_CHILD, Fault.LATE, Fault.EXCEPTION), faults=1, supervised=True, deadline=True
    ),
    "iceberg, two attempts, one retry": IcebergSetting(_kinds(Fault.STALL), faults=1, second=True, retries=1),
    "iceberg, a creation that comes late, one retry": IcebergSetting(
        _kinds(Fault.LATE, Fault.EXCEPTION, Fault.KILL), faults=2, operator=True, absent=True, retries=1
    ),
}
"""Searched to their end in `scripts/test`, each with both commit points."""

WIDE: Final = {
    "iceberg, two faults": IcebergSetting(_ANYTHING, faults=2, foreign=1, operator=True),
    "iceberg, two faults, no append": IcebergSetting(_ANYTHING, faults=2, foreign=1, operator=True, appends=False),
    "iceberg, three faults, main is set back": IcebergSetting(
        _kinds(Fault.LATE, Fault.SET_BACK, Fault.KILL), faults=3, foreign=1, operator=True, appends=False
    ),
    "iceberg, main is set back": IcebergSetting(
        _kinds(Fault.LATE, Fault.SET_BACK, Fault.KILL), faults=2, foreign=1, operator=True, deadline=True
    ),
    "iceberg, retention": IcebergSetting(
        _kinds(Fault.KILL, Fault.EXPIRE, Fault.AGE, Fault.SECOND, Fault.LATE), faults=3, foreign=2, operator=True
    ),
    "iceberg, an empty table": IcebergSetting(_ANYTHING, faults=2, foreign=1, operator=True, empty=True),
    "iceberg, a creation": IcebergSetting(_ANYTHING, faults=2, foreign=1, operator=True, absent=True),
    "iceberg, supervised, operator": IcebergSetting(
        _ANYTHING | {Fault.KILL_CHILD}, faults=1, foreign=1, supervised=True, deadline=True, operator=True
    ),
    "iceberg, two attempts, another writer": IcebergSetting(_ANYTHING, faults=1, foreign=1, second=True),
    "iceberg, two attempts, no append": IcebergSetting(_ANYTHING, faults=1, foreign=1, second=True, appends=False),
    "iceberg, two creations": IcebergSetting(_ANYTHING, faults=2, second=True, absent=True),
    "iceberg, two creations, one fault": IcebergSetting(
        _kinds(Fault.STALL, Fault.LATE), faults=1, second=True, absent=True
    ),
    "iceberg, a statement outlives its attempt": IcebergSetting(_kinds(Fault.INTERRUPT), faults=1, second=True),
    "iceberg, a retry that stands still": IcebergSetting(
        _kinds(Fault.STALL, Fault.KILL), faults=1, second=True, deadline=True, operator=True, failed_before=True
    ),
}
"""Searched to their end by `scripts/model`: some minutes."""

_RULE: Final = IcebergRule

COUNTEREXAMPLES: Final = {
    _RULE.OWN_BRANCH: ("iceberg, two attempts, one retry", "a branch is left behind, and no marker tells"),
    _RULE.PICK_FIRST: ("iceberg, stands still beyond its grace", "main shows what is not picked"),
    _RULE.PICKED_ONLY: ("iceberg, statements that outlive, repeat, do nothing", "main shows what is not picked"),
    _RULE.PICK_BINDS: ("iceberg, anything, an append", "what is settled is published"),
    _RULE.OURS_BY_ID: (
        "iceberg, anything, no append, no marks",
        "with a retry: rolled_back, but the table holds the batch",
    ),
    _RULE.OURS_BY_MARK: ("iceberg, lost answers", "with a retry: the batch is in the table twice"),
    _RULE.MARK_EPOCH: ("iceberg, two creations, undone", "committed, but the table does not hold it"),
    _RULE.PUBLISH_MAIN: ("iceberg, nothing goes wrong, others commit", "a commit of somebody else is lost"),
    _RULE.PUBLISH_BRANCH: ("iceberg, main is set back", "what is settled is published"),
    _RULE.PUBLISH_TAKES_BRANCH: ("iceberg, main is set back", "what is settled is published"),
    _RULE.CONFLICT_TAKES_BRANCH: ("iceberg, main is set back, no append", "what is settled is published"),
    _RULE.AGAIN_ONLY_APPENDS: (
        "iceberg, anything, no append, no marks",
        "with a retry: what is no append is applied to rows that it has not seen",
    ),
    _RULE.AGAIN_WHOLE: ("iceberg, retention, two statements", "main shows what is not picked"),
    _RULE.WHOLE_HISTORY: ("iceberg, retention", "rolled_back, but the table holds the batch"),
    _RULE.BACK_ANNOUNCED: (
        "iceberg, a creation that comes late, one retry",
        "committed, but the table does not hold it",
    ),
    _RULE.BACK_NEWEST: ("iceberg, anything, a creation", "with a retry: a commit of somebody else is lost"),
    _RULE.BACK_MAIN: ("iceberg, anything, a creation", "a commit of somebody else is lost"),
    _RULE.EARLIER_COUNTS: (
        "iceberg, a creation that comes late, one retry",
        "1 healthy retries do not bring the batch in",
    ),
    _RULE.CLEAN_UNLED: ("iceberg, anything, a creation", "a file of the table is deleted"),
    _RULE.CLEAN_REPEATED: ("iceberg, lost answers", "with a retry: a file of the table is deleted"),
    _RULE.CLEAN_COMMITTED: ("iceberg, main is set back", "what was committed is deleted"),
    _RULE.CLEAN_EARLIER: (
        "iceberg, a statement outlives its attempt",
        "with a retry: what an earlier attempt has left is not looked for",
    ),
}
"""What happens, and where, without a rule."""

_SPECIAL: Final = {
    "iceberg, two creations, undone": replace(
        WIDE["iceberg, two creations, one fault"], commit_point=CommitPoint.SUCCESS
    ),
}


def scenario(name: str) -> IcebergSetting:
    """Return a scenario by its name."""
    return {**WIDE, **SCENARIOS, **_SPECIAL}[name]
