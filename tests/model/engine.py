"""Explores every state that a system can reach: breadth first, so that a counterexample is a shortest one."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

__all__ = ["Counterexample", "Exploration", "System", "explore"]

S = TypeVar("S", bound="Hashable")


class System(Protocol[S]):
    """What can be explored. A state is immutable; equal states are one state."""

    @property
    def start(self) -> S: ...

    def moves(self, state: S) -> Iterable[tuple[str, S]]:
        """Return every step that may come next, with what a person would call it."""
        ...

    def violation(self, state: S, *, final: bool) -> str | None:
        """Return which promise a state breaks; `final`: nothing can move any more."""
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
    """What was seen; `complete` if no state within reach was left out."""

    states: int
    complete: bool
    counterexample: Counterexample | None


def explore(system: System[S], *, states_max: int) -> Exploration:
    """Look at every reachable state until a promise is broken or `states_max` are known.

    Only hashes of states are kept: among a million, two are equal by chance once in ten million searches.
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
