"""Two parts of set-up at once: most of them wait for a network, for one core or for a disk."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from scripts.provision.report import SetupError, say

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["side_by_side"]

Here = TypeVar("Here")
Beside = TypeVar("Beside")


def side_by_side(here: Callable[[], Here], beside: Callable[[], Beside]) -> tuple[Here, Beside]:
    """Call `here` on this thread, which Ctrl-C interrupts, and `beside` on another one; return both results.

    Each runs to its end, also if the other one fails: what it has done need not be done again. Raises what `here`
    raises, else what `beside` raises; of two failures it tells the second one.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        other = pool.submit(beside)
        try:
            result = here()
        except SetupError:
            if (second := other.exception()) is not None:
                say(f"failed: {second}")
            raise
    return result, other.result()
