"""The ids that most tables of the tier hold before and after their scripts."""

from __future__ import annotations

from typing import Final

__all__ = ["BASE", "BATCH", "MERGED", "Ids"]

Ids = tuple[int, ...]

BASE: Final[Ids] = tuple(range(5))
"""Those of a table before its script."""
BATCH: Final[Ids] = tuple(range(10, 17))
"""What most scripts mean to append."""
MERGED: Final[Ids] = (0, 1, 2, 5, 6, 7, 103, 104)
"""What `WrongJob.merge` makes of `BASE`."""
