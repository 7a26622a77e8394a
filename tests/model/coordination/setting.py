"""The parameters of a search: jobs, faults, and the rules that hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from safewriter.coordination.configuration import Configuration
from tests.model.coordination.rules import TurnRule

if TYPE_CHECKING:
    from tests.model.coordination.rules import Fault
    from tests.model.coordination.state import State

__all__ = ["Setting", "job"]


def job(name: str, **more: object) -> Configuration:
    """Return a job's configuration. With a lease of two ticks a holder is sure of its turn for one tick, and a waiter
    takes it over in the third.
    """
    return Configuration(**{"lock": "lock", "job": name, "lease_s": 2, "poll_s": 0.001, **more})  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One scenario. `queued`: all jobs already wait, in order. `slow`: answers may be delayed. `clocks`: a holder has a
    clock; without one it believes that it holds its turn until the record shows otherwise, like a handler's job.
    `time`: time passes.
    """

    jobs: tuple[Configuration, ...]
    kinds: frozenset[Fault] = frozenset()
    faults: int = 0
    attempts: int = 1
    renewals: int = 0
    queued: bool = False
    slow: bool = False
    clocks: bool = True
    time: bool = True
    rules: frozenset[TurnRule] = field(default_factory=lambda: frozenset(TurnRule))

    @property
    def lease(self) -> int:
        """The lease of all jobs, in ticks."""
        return int(self.jobs[0].lease_s)

    def may(self, state: State, fault: Fault) -> bool:
        """Return whether a fault may happen now."""
        return fault in self.kinds and state.faults > 0

    def has(self, rule: TurnRule) -> bool:
        """Return whether a rule holds."""
        return rule in self.rules
