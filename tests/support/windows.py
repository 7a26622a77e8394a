"""The times in which jobs have held a lock."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.turn_player import Event

__all__ = ["check_windows"]


def check_windows(events: list[Event]) -> None:
    """Check that no turn begins before the previous one has ended, and that tokens grow."""
    windows = [
        (one, next(end for end in events if end.what == "end" and end.token == one.token))
        for one in events
        if one.what == "begin"
    ]
    in_order = sorted(windows, key=lambda window: window[0].at_s)
    for (_, end), (begin, _) in pairwise(in_order):
        assert end.at_s <= begin.at_s
        assert end.token < begin.token
