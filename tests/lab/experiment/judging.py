"""Classify how a run ended: by the exit code, as the paper does, and by the table, as readers see it."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.lab.experiment.record import Outcome, Truth

__all__ = ["Found", "outcome_of", "truth_of"]


@dataclass(frozen=True, slots=True)
class Found:
    """What is known after a run. `missed`: the request to kill it at never came. `added`: rows beyond those before;
    `verdict`: the guard's, after recovery.
    """

    code: int
    missed: bool
    guarded: bool
    fails: bool
    added: int
    expected: int
    verdict: str | None


def outcome_of(found: Found) -> Outcome:
    """Classify as the paper: any SIGKILL is a loss without a guard and a rollback with it, whatever the table holds."""
    if found.code == 0:
        return "rollback_success" if found.fails else "success"
    if found.code == -signal.SIGKILL:
        return "rollback_success" if found.guarded else "silent_loss"
    return "visible_error"


def truth_of(found: Found) -> Truth:
    """Classify by the table. A guard's verdict must match what readers find; orphan files are counted separately."""
    return "not_killed" if found.missed else _by_rows(found)


def _by_rows(found: Found) -> Truth:
    if found.added not in (0, found.expected):
        return "damaged"
    landed = found.added > 0
    acknowledged = found.code == 0 and not found.fails
    if found.guarded and found.verdict != ("committed" if landed else "rolled_back"):
        return "false_verdict"
    if acknowledged:
        return "success" if landed else "silent_loss"
    if landed:
        return "committed_when_killed" if found.code == -signal.SIGKILL else "damaged"
    if found.code not in (0, -signal.SIGKILL):
        return "visible_error"
    return "rollback_success" if found.guarded else "silent_loss"
