"""Checks that every state can reach a good one, backward through the graph of all states."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.model.engine import explore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.coordination.model import TurnModel
    from tests.model.coordination.state import State

__all__ = ["search"]

STATES_MAX = 100_000


@dataclass(frozen=True)
class _Recorded:
    """A model that records each state's predecessors by hash. It leaves faults out: progress may not depend on one."""

    model: TurnModel
    before: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    good: set[int] = field(default_factory=set)
    all: set[int] = field(default_factory=set)

    @property
    def start(self) -> State:
        return self.model.start

    def moves(self, state: State) -> Iterator[tuple[str, State]]:
        here = hash(state)
        self.all.add(here)
        if self.model.is_good(state):
            self.good.add(here)
        for what, after in self.model.moves(state):
            if after.faults == state.faults:
                self.before[hash(after)].add(here)
            yield what, after

    def violation(self, state: State, *, final: bool) -> str | None:
        return self.model.violation(state, final=final)


@dataclass(frozen=True)
class _Stuck:
    """A model in which the states of `stuck` break a promise: no good state can be reached from them."""

    model: TurnModel
    stuck: set[int]

    @property
    def start(self) -> State:
        return self.model.start

    def moves(self, state: State) -> Iterator[tuple[str, State]]:
        return self.model.moves(state)

    def violation(self, state: State, *, final: bool) -> str | None:
        return "a job that may run never gets its turn" if hash(state) in self.stuck else None


def search(model: TurnModel, states_max: int = STATES_MAX) -> tuple[int, str | None]:
    """Search completely; return the number of states, and the first broken promise or None."""
    recorded = _Recorded(model)
    found = explore(recorded, states_max=states_max)
    if found.counterexample is not None:
        print(found.counterexample)  # noqa: T201 - pytest shows it with a failure
        return found.states, found.counterexample.violation
    assert found.complete, f"more than {states_max} states: search it by scripts/model"
    reached, todo = set(recorded.good), list(recorded.good)
    while todo:
        for one in recorded.before[todo.pop()] - reached:
            reached.add(one)
            todo.append(one)
    stuck = explore(_Stuck(model, recorded.all - reached), states_max=states_max).counterexample
    if stuck is None:
        return found.states, None
    print(stuck)  # noqa: T201 - as above
    return found.states, stuck.violation
