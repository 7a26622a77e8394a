"""The scenarios on an Iceberg table to search, and the counterexample of each rule."""

from __future__ import annotations

from typing import Final

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
    "iceberg, anything, no append": IcebergSetting(_ANYTHING, faults=1, foreign=1, operator=True, appends=False),
    "iceberg, anything, an empty table": IcebergSetting(_ANYTHING, faults=1, foreign=1, operator=True, empty=True),
    "iceberg, two statements, no append": IcebergSetting(
        _kinds(Fault.SECOND, Fault.LATE), faults=2, foreign=1, operator=True, appends=False
    ),
    "iceberg, statements that outlive, repeat, do nothing": IcebergSetting(_STATEMENTS, faults=2, operator=True),
    "iceberg, main is set back": IcebergSetting(_kinds(Fault.LATE, Fault.SET_BACK), faults=3, foreign=1, operator=True),
    "iceberg, snapshots are expired": IcebergSetting(
        _kinds(Fault.KILL, Fault.EXPIRE, Fault.LATE), faults=2, foreign=1, operator=True
    ),
    "iceberg, marks are unset": IcebergSetting(
        _kinds(Fault.KILL, Fault.UNMARK, Fault.LATE), faults=2, foreign=1, operator=True
    ),
    "iceberg, days go by": IcebergSetting(
        _kinds(Fault.KILL, Fault.STALL, Fault.LATE, Fault.AGE), faults=2, operator=True
    ),
    "iceberg, days go by, snapshots are expired": IcebergSetting(
        _kinds(Fault.STALL, Fault.AGE, Fault.EXPIRE), faults=3, foreign=1, operator=True
    ),
    "iceberg, the table is dropped, and registered again": IcebergSetting(
        _kinds(Fault.GAP, Fault.EXCEPTION, Fault.KILL), faults=2, operator=True
    ),
    "iceberg, a document that is deleted while it is open": IcebergSetting(
        _kinds(Fault.KILL, Fault.AGE, Fault.GAP, Fault.FORGET), faults=3, operator=True, deadline=True
    ),
    "iceberg, stands still beyond its grace": IcebergSetting(
        _kinds(Fault.STALL), faults=1, operator=True, deadline=True
    ),
    "iceberg, supervised": IcebergSetting(
        _kinds(Fault.KILL, Fault.KILL_CHILD, Fault.LATE, Fault.EXCEPTION, Fault.INTERRUPT),
        faults=1,
        supervised=True,
        deadline=True,
    ),
    "iceberg, two attempts, one retry": IcebergSetting(
        _kinds(Fault.STALL, Fault.LATE, Fault.IDLE), faults=1, second=True, retries=1
    ),
}
"""`scripts/test` searches these completely, each with both commit points."""

WIDE: Final = {
    "iceberg, two faults": IcebergSetting(
        _ANYTHING | {Fault.SECOND}, faults=2, foreign=1, operator=True, appends=False
    ),
    "iceberg, three faults, main is set back": IcebergSetting(
        _kinds(Fault.LATE, Fault.SET_BACK, Fault.KILL, Fault.INTERRUPT), faults=3, foreign=1, operator=True
    ),
    "iceberg, main is set back, days go by": IcebergSetting(
        _kinds(Fault.LATE, Fault.SET_BACK, Fault.KILL, Fault.AGE), faults=5, operator=True
    ),
    "iceberg, supervised, operator": IcebergSetting(
        _ANYTHING | {Fault.KILL_CHILD}, faults=1, foreign=1, supervised=True, deadline=True, operator=True
    ),
    "iceberg, two attempts": IcebergSetting(_ANYTHING | {Fault.SET_BACK, Fault.GAP}, faults=2, foreign=1, second=True),
    "iceberg, two attempts, days go by": IcebergSetting(
        _kinds(Fault.STALL, Fault.KILL, Fault.LATE, Fault.AGE, Fault.EXPIRE), faults=2, second=True
    ),
    "iceberg, two attempts, an empty table": IcebergSetting(_ANYTHING, faults=2, second=True, empty=True),
    "iceberg, a retry that stands still": IcebergSetting(
        _ANYTHING, faults=1, second=True, deadline=True, operator=True, failed_before=True
    ),
    "iceberg, a document that is deleted": IcebergSetting(
        _ANYTHING | {Fault.AGE, Fault.GAP, Fault.FORGET}, faults=3, operator=True, deadline=True
    ),
}
"""`scripts/model` searches these completely, in some minutes."""

_RULE: Final = IcebergRule

COUNTEREXAMPLES: Final = {
    _RULE.BASE_FIRST: ("iceberg, anything, an empty table", "2 healthy retries do not bring the batch in"),
    _RULE.PUBLISH_MAIN: ("iceberg, nothing goes wrong, others commit", "a commit of somebody else is lost"),
    _RULE.PUBLISH_UNFENCED: ("iceberg, anything, an append", "rolled_back, but the table holds the batch"),
    _RULE.PUBLISH_MARK: ("iceberg, snapshots are expired", "with a retry: the batch is in the table twice"),
    _RULE.PUBLISH_ONCE: ("iceberg, lost answers", "the batch is in the table twice"),
    _RULE.PUBLISH_IN_TIME: ("iceberg, supervised", "rolled_back, but the table holds the batch"),
    _RULE.AGAIN_ALONE: (
        "iceberg, two statements, no append",
        "several statements are applied to a table that they have not seen",
    ),
    _RULE.FENCE_FIRST: ("iceberg, anything, an append", "rolled_back, but the table holds the batch"),
    _RULE.LOOK_AGAIN: ("iceberg, anything, an append", "rolled_back, but the table holds the batch"),
    _RULE.OWN_FENCE: ("iceberg, two attempts, one retry", "1 healthy retries do not bring the batch in"),
    _RULE.SECOND_WITNESS: ("iceberg, marks are unset", "with a retry: the batch is in the table twice"),
    _RULE.FENCE_OUTLIVES: (
        "iceberg, days go by, snapshots are expired",
        "rolled_back, but the table holds the batch",
    ),
    _RULE.MARK_AGE: ("iceberg, days go by, snapshots are expired", "rolled_back, but the table holds the batch"),
    _RULE.GONE_UNDECIDED: (
        "iceberg, the table is dropped, and registered again",
        "rolled_back, but the table holds the batch",
    ),
}
"""Without the rule: the scenario and the promise that it breaks."""


def scenario(name: str) -> IcebergSetting:
    """Return the scenario of this name."""
    return {**WIDE, **SCENARIOS}[name]
