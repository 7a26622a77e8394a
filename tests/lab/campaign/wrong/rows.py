"""The ids that most tables of the tier hold before and after their scripts."""

from __future__ import annotations

from typing import Final

__all__ = ["BASE", "BATCH", "MERGED", "Ids"]

Ids = tuple[int, ...]

BASE: Final[Ids] = tuple(range(5))
"""The ids of a table before its script."""
BATCH: Final[Ids] = tuple(range(10, 17))
"""The ids that most scripts append."""
MERGED: Final[Ids] = (0, 1, 2, 5, 6, 7, 103, 104)
"""The result of `WrongJob.merge` on `BASE`."""
