"""Explore every state that a system can reach, breadth first, so that each counterexample is a shortest one."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

__all__ = ["Counterexample", "Exploration", "System", "explore"]

S = TypeVar("S", bound="Hashable")


class System(Protocol[S]):
    """A system to explore. States are immutable; equal states are one state."""

    @property
    def start(self) -> S: ...

    def moves(self, state: S) -> Iterable[tuple[str, S]]:
        """Return every possible next step: a readable name, and the state after it."""
        ...

    def violation(self, state: S, *, final: bool) -> str | None:
        """Return the promise that a state breaks, or None; `final`: no step is possible."""
        ...


@dataclass(frozen=True)
class Counterexample:
    """A broken promise, and a shortest way to it."""

    violation: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        steps = "\n".join(f"  {number:>2}. {step}" for number, step in enumerate(self.trace, 1))
        return f"{self.violation}\n{steps}"


@dataclass(frozen=True)
class Exploration:
    """The result of an exploration; `complete` if it visited every reachable state."""

    states: int
    complete: bool
    counterexample: Counterexample | None


def explore(system: System[S], *, states_max: int) -> Exploration:
    """Check every reachable state until one breaks a promise or more than `states_max` are known.

    It keeps only hashes of states: among a million, two collide in one of ten million searches.
    """
    start = system.start
    parents: dict[int, tuple[int, str] | None] = {hash(start): None}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        here = hash(state)
        following = list(system.moves(state))
        broken = system.violation(state, final=not following)
        if broken is not None:
            return Exploration(
                len(parents), complete=False, counterexample=Counterexample(broken, _trace(parents, here))
            )
        if len(parents) > states_max:
            return Exploration(len(parents), complete=False, counterexample=None)
        for step, after in following:
            there = hash(after)
            if there not in parents:
                parents[there] = (here, step)
                queue.append(after)
    return Exploration(len(parents), complete=True, counterexample=None)


def _trace(parents: dict[int, tuple[int, str] | None], state: int) -> tuple[str, ...]:
    steps = []
    while (came := parents[state]) is not None:
        state, step = came
        steps.append(step)
    return tuple(reversed(steps))
