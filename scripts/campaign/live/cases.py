"""The cases of the campaign, by name: `delta-append-guarded-torn-03` is hit at its third mutating request, torn."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

from scripts.campaign.job import STATEMENTS
from scripts.campaign.selection import is_selected
from scripts.experiment.plan import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scripts.experiment.plan import Format

__all__ = ["PHASES", "Case", "Phase", "Sequence", "sequences"]

Phase = Literal["before", "torn", "after", "late", "lost", "frozen"]
"""What becomes of the request: the writer is killed before it, in its body, or after it was applied; it is applied only
behind the recovery; its answer is lost, and the writer lives; the writer is stopped, and goes on behind the retry.
"""
PHASES: Final[tuple[Phase, ...]] = get_args(Phase)


@dataclass(frozen=True, slots=True)
class Sequence:
    """A write and a phase: its cases are the write's requests, one after the other, until there is none any more."""

    table_format: Format
    statement: str
    guarded: bool
    phase: Phase

    @property
    def name(self) -> str:
        """The beginning of the names of its cases."""
        return f"{self.table_format}-{self.statement}-{'guarded' if self.guarded else 'plain'}-{self.phase}"

    def case(self, nth: int) -> Case:
        """Return the case that is hit at the `nth` mutating request, counted from 1."""
        return Case(self, nth)


@dataclass(frozen=True, slots=True)
class Case:
    """One fault."""

    sequence: Sequence
    nth: int

    @property
    def name(self) -> str:
        """By it the case is known as done, and replayed."""
        return f"{self.sequence.name}-{self.nth:02}"

    @classmethod
    def parse(cls, name: str) -> Case:
        """Return the case of a name. Raises `ValueError` for any other text."""
        for sequence in sequences():
            if name.startswith(f"{sequence.name}-") and re.fullmatch(
                r"0[1-9]|[1-9][0-9]", name[len(sequence.name) + 1 :]
            ):
                return cls(sequence, int(name[len(sequence.name) + 1 :]))
        raise ValueError(f"{name!r} is no case; one is delta-append-guarded-torn-03")


def sequences(select: str = "") -> Iterator[Sequence]:
    """Yield those that `select` names; guarded and plain in turn."""
    for table_format in FORMATS:
        for statement in STATEMENTS:
            for phase in PHASES:
                for guarded in (True, False):
                    one = Sequence(table_format, statement, guarded, phase)
                    if is_selected(one.name, select):
                        yield one
