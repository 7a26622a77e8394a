"""What a look at one thing has found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "finding"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One look at one thing. Only `fail` makes what was looked at unfit; `warn` may be what
    somebody wants.
    """

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: str
    remedy: str = ""


def finding(name: str, is_well: object, detail: str, remedy: str) -> Finding:
    """Make a finding that is well or not; the remedy is told only if not."""
    return Finding(name, "ok", detail) if is_well else Finding(name, "fail", detail, remedy)
