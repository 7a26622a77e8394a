"""Helpers for the tests of both models, Delta's and Iceberg's: search a model, and collect its settles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from tests.model.engine import explore
from tests.model.setting import OPERATOR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.model.model import Model
    from tests.model.state import State

__all__ = ["scenes", "search", "settle_alone"]

STATES_MAX = 100_000
STEPS_MAX = 100
S = TypeVar("S")


def search(model: Model) -> str | None:
    """Search completely; return the first broken promise, or None."""
    found = explore(model, states_max=STATES_MAX)
    if found.counterexample is None:
        assert found.complete, f"more than {STATES_MAX} states: search it by scripts/model"
        return None
    print(found.counterexample)  # noqa: T201 - pytest shows it with a failure
    return found.counterexample.violation


def scenes(model: Model, scene: Callable[[State, int], S]) -> set[S]:
    """Return `scene(state, who)` for every state in which a process `who` begins to settle."""
    found: set[S] = set()
    explore(_Watched(model, scene, found), states_max=STATES_MAX)
    return found


def settle_alone(model: Model, state: State) -> State:
    """Return the state after the operator has settled without interruption."""
    for _ in range(STEPS_MAX):
        if state.procs[OPERATOR].at in ("done", "dead"):
            return state
        state = next(iter(model.steps(state, OPERATOR)))[1]
    raise AssertionError


@dataclass(frozen=True)
class _Watched(Generic[S]):
    """A model that records every state in which a settle begins."""

    model: Model
    scene: Callable[[State, int], S]
    found: set[S]

    @property
    def start(self) -> State:
        return self.model.start

    def moves(self, state: State) -> Iterator[tuple[str, State]]:
        for who, proc in enumerate(state.procs):
            if proc.at == "S1" and state.doc is not None:
                self.found.add(self.scene(state, who))
        yield from self.model.moves(state)

    def violation(self, state: State, *, final: bool) -> str | None:
        return self.model.violation(state, final=final)
