"""Is there an order of operations, each between its call and its answer, that explains what every caller saw?

The search of Wing and Gong with Lowe's cache, as in Porcupine (https://github.com/anishathalye/porcupine): it takes any
operation that could come next, and never visits the same set of operations with the same state twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

__all__ = ["NEVER", "Operation", "is_linearizable"]

_State = TypeVar("_State", bound="Hashable")
NEVER: Final = math.inf


@dataclass(frozen=True, slots=True)
class Operation(Generic[_State]):
    """`act` returns the state after it, or None if the operation cannot have happened there. `called` and `answered`:
    its moments; `NEVER` if no answer came. An operation that is not `required` may also never have happened, and
    happens at most before the operation whose number `before` is.
    """

    act: Callable[[_State], _State | None]
    called: float
    answered: float = NEVER
    required: bool = True
    before: int | None = None


def is_linearizable(operations: Sequence[Operation[_State]], state: _State) -> bool:
    """Return whether the operations, from a state on, have an order that explains their answers."""
    wanted = sum(1 << number for number, one in enumerate(operations) if one.required)
    seen = {(0, state)}
    todo: list[tuple[int, _State, float]] = [(0, state, -NEVER)]
    while todo:
        done, state, latest = todo.pop()
        if done & wanted == wanted:
            return True
        # Whatever is left and required was answered at this moment or later: nothing called behind it can come first.
        horizon = min(one.answered for number, one in enumerate(operations) if one.required and not done >> number & 1)
        for number, one in enumerate(operations):
            if done >> number & 1 or one.called > horizon or one.answered < latest:
                continue
            if one.before is not None and done >> one.before & 1:
                continue
            after = one.act(state)
            if after is None:
                continue
            step = done | 1 << number, after
            if step not in seen:
                seen.add(step)
                todo.append((*step, max(latest, one.called)))
    return False
