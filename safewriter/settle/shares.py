"""Divide a stretch of time among writes, so that none keeps the others from being looked at.

Each write first gets a share of the time; all that is left is for those that ran out of it.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from safewriter.deadline import Clock

__all__ = ["SHARE_MS", "THREADS", "in_shares"]

_Item = TypeVar("_Item")
_Look = TypeVar("_Look")
THREADS: Final = 8
SHARE_MS: Final = 10_000
"""Enough for nearly every write; a deployed sweep has time for about 190 such shares."""


class _Share:
    """The time of one write: until a moment, or until all time is over. `ran_out`: it was asked after that moment."""

    def __init__(self, may_go_on: Callable[[], bool], clock: Clock, until_ms: int) -> None:
        self._may_go_on = may_go_on
        self._clock = clock
        self._until_ms = until_ms
        self.ran_out = False

    def __call__(self) -> bool:
        self.ran_out |= self._clock() >= self._until_ms
        return not self.ran_out and self._may_go_on()


def in_shares(
    items: Sequence[_Item],
    look: Callable[[_Item, Callable[[], bool]], _Look],
    is_undecided: Callable[[_Look], bool],
    may_go_on: Callable[[], bool],
    clock: Clock,
    *,
    told: Callable[[_Look], _Look] = lambda found: found,
    threads: int = THREADS,
    share_ms: int = SHARE_MS,
) -> list[_Look]:
    """Look at each item within a share, in their order and by several threads, then again at those that ran out of it
    and are undecided; return the results in the order of the items.

    `look` gets an item and what tells it whether it may go on. `told` gets each final result at once, and what it
    returns is kept.
    """
    ended = threading.Event()

    def goes_on() -> bool:
        return not ended.is_set() and may_go_on()

    def first(item: _Item) -> tuple[_Look, bool]:
        share = _Share(goes_on, clock, clock() + share_ms)
        found = look(item, share)
        needs_more = share.ran_out and is_undecided(found)
        return (found, True) if needs_more else (told(found), False)

    def last(item: _Item, before: tuple[_Look, bool]) -> _Look:
        found, needs_more = before
        if not needs_more:
            return found
        return told(look(item, goes_on) if goes_on() else found)

    with ThreadPoolExecutor(threads) as pool:
        try:
            return list(pool.map(last, items, list(pool.map(first, items))))
        finally:
            ended.set()  # an interrupt, or an error of one, ends the others
