"""What `soal doctor --script` says about one line of a script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from soal.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Line", "fail", "warn"]


@dataclass(frozen=True, slots=True)
class Line:
    """`variants`: if the image lacks what the line needs, the variants that have it."""

    number: int
    finding: Finding
    variants: tuple[str, ...] = ()

    def finding_in(self, name: str) -> Finding:
        """Return the finding with the place in the file of this name."""
        return Finding(f"{name}:{self.number}", self.finding.status, self.finding.detail, self.finding.remedy)


def warn(number: int, detail: str, remedy: str, variants: Sequence[str] = ()) -> Line:
    """Say what the image ignores, or what the script's author should know."""
    return Line(number, Finding("", "warn", detail, remedy), tuple(variants))


def fail(number: int, detail: str, remedy: str, variants: Sequence[str] = ()) -> Line:
    """Say that the line will fail."""
    return Line(number, Finding("", "fail", detail, remedy), tuple(variants))
