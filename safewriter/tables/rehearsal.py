"""What settling would commit to catalogs, noted and not done: the catalogs' part of a dry run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Rehearsal"]


@dataclass(slots=True)
class Rehearsal:
    """`metadata` holds each table as it would be by now, by its name; `changes` what was committed, in order."""

    metadata: dict[str, Any] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
