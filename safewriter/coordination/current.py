"""The turns that this process holds, and to which of them a guarded write belongs."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from safewriter.coordination.borrowed import borrowed_turn
from safewriter.errors import UsageError

if TYPE_CHECKING:
    from safewriter.coordination.borrowed import BorrowedTurn
    from safewriter.coordination.turn import Turn

__all__ = ["begin", "end", "turn_of_this_thread"]


class _Entry(NamedTuple):
    thread: int
    turn: Turn | BorrowedTurn
    stream: str | None


_LOCK: Final = threading.Lock()
_TURNS: Final[list[_Entry]] = []


def begin(turn: Turn | BorrowedTurn, stream: str | None = None) -> None:
    """Note a turn of this thread. `stream`: the run id of the stream, for a turn of a batch."""
    with _LOCK:
        _TURNS.append(_Entry(threading.get_ident(), turn, stream))


def end(turn: Turn | BorrowedTurn) -> None:
    """Forget a turn."""
    with _LOCK:
        _TURNS[:] = [entry for entry in _TURNS if entry.turn is not turn]


def turn_of_this_thread(stream: str | None = None) -> Turn | BorrowedTurn | None:
    """Return the turn under which this thread writes: its own, else the only turn of the process; None without one.

    The turn of a stream's batch is for that `stream` only. The turn that the handler holds for the process counts as
    this thread's own. Raises `UsageError` if there are several.
    """
    with _LOCK:
        turns = [entry.turn for entry in _TURNS if entry.thread == threading.get_ident()]
        turns = turns or [entry.turn for entry in _TURNS if entry.stream in (None, stream)]
    borrowed = borrowed_turn()
    if borrowed is not None and borrowed not in turns:
        turns.append(borrowed)
    if len(turns) > 1:
        names = ", ".join(sorted(turn.lock for turn in turns))
        raise UsageError(f"the write may belong to a turn on {names}; it belongs to one, so pass it as turn=")
    return turns[0] if turns else None
