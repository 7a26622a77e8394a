"""The turns that this process holds, and which of them a guarded write belongs to."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from safewriter.coordination.borrowed import borrowed_turn
from safewriter.errors import UsageError

if TYPE_CHECKING:
    from safewriter.coordination.borrowed import BorrowedTurn
    from safewriter.coordination.turn import Turn

__all__ = ["begin", "end", "turn_of_this_thread"]

_LOCK: Final = threading.Lock()
_TURNS: Final[list[tuple[int, Turn | BorrowedTurn]]] = []


def begin(turn: Turn | BorrowedTurn) -> None:
    """Note a turn, on the thread that took it."""
    with _LOCK:
        _TURNS.append((threading.get_ident(), turn))


def end(turn: Turn | BorrowedTurn) -> None:
    """Forget a turn."""
    with _LOCK:
        _TURNS[:] = [(thread, one) for thread, one in _TURNS if one is not turn]


def turn_of_this_thread() -> Turn | BorrowedTurn | None:
    """Return the turn under which this thread writes: its own, else the only one of the process.

    The turn that the handler holds for the process counts as its own. Raises `UsageError` if there are several.
    """
    with _LOCK:
        own = [turn for thread, turn in _TURNS if thread == threading.get_ident()]
        turns = own or [turn for _, turn in _TURNS]
    borrowed = borrowed_turn()
    if borrowed is not None and borrowed not in turns:
        turns.append(borrowed)
    if len(turns) > 1:
        names = ", ".join(sorted(turn.lock for turn in turns))
        raise UsageError(f"the write may belong to a turn on {names}; it belongs to one, so pass it as turn=")
    return turns[0] if turns else None
