"""The crash states of a recorded write: which requests were applied, and which are still on their way."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["bits", "states"]


def bits(mask: int) -> Iterator[int]:
    """Yield the numbers of the set bits, the lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def states(after: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield all pairs (applied, late), as bits. `after`: for each request, the requests that it waits for.

    A request is applied only after all that it waits for. Any of the requests that could be sent next may be late.
    """
    seen = {0}
    queue = [0]
    for applied in queue:
        ready = [n for n, needs in enumerate(after) if not applied >> n & 1 and needs & ~applied == 0]
        for subset in range(1 << len(ready)):
            yield applied, sum(1 << n for at, n in enumerate(ready) if subset >> at & 1)
        for n in ready:
            if (grown := applied | 1 << n) not in seen:
                seen.add(grown)
                queue.append(grown)
