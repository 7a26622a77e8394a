"""The scenarios to search, and the counterexample of each rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from safewriter.coordination.configuration import Edge, FirstRun
from tests.model.coordination.rules import Fault, TurnRule
from tests.model.coordination.setting import Setting, job

__all__ = ["COUNTEREXAMPLES", "SCENARIOS", "WIDE", "without"]

_A, _B = job("A"), job("B")

_KILL, _ANSWERS = frozenset({Fault.KILL}), frozenset({Fault.LOST, Fault.LATE})
_RING = (job("A", predecessor="B", first_run=FirstRun.RUN), job("B", predecessor="A"))
_SOFT_RING = tuple(job(one, predecessor=other, edge=Edge.SOFT) for one, other in ("AB", "BC", "CA"))

SCENARIOS: Final = {
    "two jobs": Setting(jobs=(_A, _B)),
    "two jobs, a long lease": Setting(jobs=(job("A", lease_s=5), job("B", lease_s=5))),
    "two jobs without clocks": Setting(jobs=(_A, _B), clocks=False),
    "two jobs that wait, a kill": Setting(jobs=(_A, _B), queued=True, kinds=_KILL, faults=1),
    "two jobs that wait, a lost answer": Setting(jobs=(_A, _B), queued=True, kinds=_ANSWERS, faults=1),
    "a commit without an answer": Setting(jobs=(_A, _B), kinds=frozenset({Fault.UNKNOWN, Fault.KILL}), faults=2),
    "an operator": Setting(jobs=(_A, _B), kinds=frozenset({Fault.FORCE}), faults=1),
    "a ring, two turns each, a kill": Setting(jobs=_RING, kinds=_KILL, faults=1, attempts=2),
    "a soft ring": Setting(jobs=_SOFT_RING, queued=True, time=False),
}
"""`scripts/test` searches these completely."""

WIDE: Final = {
    "slow answers, a renewal": Setting(jobs=(_A, _B), queued=True, renewals=1, slow=True),
    "two jobs, a kill, a renewal": Setting(jobs=(_A, _B), kinds=_KILL, faults=1, renewals=1),
    "two jobs, a lost answer, a renewal": Setting(jobs=(_A, _B), kinds=_ANSWERS, faults=1, renewals=1),
    "two jobs, two turns each": Setting(jobs=(_A, _B), attempts=2),
    "two jobs that wait, two faults": Setting(
        jobs=(_A, _B), queued=True, kinds=_KILL | _ANSWERS | {Fault.FORCE, Fault.UNKNOWN}, faults=2
    ),
    "three jobs that wait": Setting(jobs=(_A, _B, job("C")), queued=True),
}
"""`scripts/model` searches these completely."""

_TWO, _SURE = "two holders can commit", "a holder is sure of its turn, and another has it"
_LOST_ANSWER = "two jobs that wait, a lost answer"
COUNTEREXAMPLES: Final = {
    TurnRule.RECORD_CAS: ("two jobs", "a token does not grow"),
    TurnRule.TOKEN_GROWS: ("two jobs", "a token does not grow"),
    TurnRule.UNSETTLED_KEPT: (_LOST_ANSWER, _TWO),
    TurnRule.DEAD_WRITES_KEPT: ("two jobs", _TWO),
    TurnRule.UNDECIDED_KEPT: ("a commit without an answer", _TWO),
    TurnRule.COMPLETES_LATE: (
        "a ring, two turns each, a kill",
        "a job has its turn before its predecessor has completed one",
    ),
    TurnRule.WHOLE_LEASE: ("two jobs", _SURE),
    TurnRule.ANSWER_TO_REQUEST: ("slow answers, a renewal", _SURE),
    TurnRule.NONCE_READ_BACK: (_LOST_ANSWER, "a job waits for its own turn"),
    TurnRule.CONFIRMED: (_LOST_ANSWER, _SURE),
    TurnRule.GIVE_UP: ("two jobs that wait, a kill", "a job that may run never gets its turn"),
    TurnRule.SOFT_RING: ("a soft ring", "a job that may run never gets its turn"),
    TurnRule.SETTLE_FIRST: ("two jobs", _TWO),
    TurnRule.NOTE_FIRST: ("two jobs", _TWO),
    TurnRule.NOTE_HELD: ("two jobs without clocks", _TWO),
    TurnRule.HOLDER_STOPS: ("two jobs", _SURE),
    TurnRule.SENT_NOT_ANSWERED: ("slow answers, a renewal", _SURE),
    TurnRule.EVERY_BEAT: ("two jobs, a long lease", _SURE),
    TurnRule.RELEASE_READ_BACK: (_LOST_ANSWER, "a turn that was completed is told to be lost"),
}
"""Without the rule: the scenario and the promise that it breaks."""


def without(setting: Setting, *rules: TurnRule) -> Setting:
    """Return the scenario without these rules."""
    return replace(setting, rules=setting.rules - set(rules))
