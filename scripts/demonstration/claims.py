"""The demonstration's claims, each checked before it is printed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Claim", "Claims"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence, and whether it is true."""

    text: str
    holds: bool


@dataclass(slots=True)
class Claims:
    """All claims so far; one that does not hold is shown as such and remembered."""

    console: Console
    made: list[Claim] = field(default_factory=list)

    def check(self, text: str, *, holds: bool) -> None:
        """Print the claim with its mark."""
        claim = Claim(text, holds)
        self.made.append(claim)
        mark, style = ("✓", "green") if claim.holds else ("✗ NOT TRUE:", "bold red")
        self.console.print(Text.assemble(("  " + mark, style), " ", text), soft_wrap=True)

    @property
    def all_hold(self) -> bool:
        """Tell whether there were claims, and every one of them is true."""
        return bool(self.made) and all(claim.holds for claim in self.made)
