"""The cases of the campaign, by name: `delta-append-guarded-torn-03` is hit at its third mutating request, torn."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.lab.campaign.job import STATEMENTS
from tests.lab.campaign.live.faults import PHASES, AtRequest
from tests.lab.campaign.selection import is_selected
from tests.lab.experiment.plan import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.campaign.live.faults import Fault, Phase
    from tests.lab.experiment.plan import Format

__all__ = ["Case", "Sequence", "Write", "sequences"]


@dataclass(frozen=True, slots=True)
class Write:
    """A kind of write."""

    table_format: Format
    statement: str
    guarded: bool

    @property
    def name(self) -> str:
        """The part of its cases' names that describes the write."""
        return f"{self.table_format}-{self.statement}-{'guarded' if self.guarded else 'plain'}"


@dataclass(frozen=True, slots=True)
class Sequence:
    """A write and a phase: its cases hit the write's requests one after the other, until none is left."""

    write: Write
    phase: Phase

    @property
    def name(self) -> str:
        """The beginning of its cases' names."""
        return f"{self.write.name}-{self.phase}"

    def case(self, nth: int) -> Case:
        """Return the case that hits the `nth` mutating request, counted from 1."""
        return Case(self, nth)


@dataclass(frozen=True, slots=True)
class Case:
    """One fault."""

    sequence: Sequence
    nth: int

    @property
    def name(self) -> str:
        """Stable name, used to resume and replay."""
        return f"{self.sequence.name}-{self.nth:02}"

    @property
    def write(self) -> Write:
        """The write to hit."""
        return self.sequence.write

    def fault(self) -> Fault:
        """Return a new fault, to be planted once."""
        return AtRequest(self.sequence.phase, self.nth)

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
    """Yield the sequences that `select` names; guarded and plain in turn."""
    for table_format in FORMATS:
        for statement in STATEMENTS[table_format]:
            for phase in PHASES:
                for guarded in (True, False):
                    one = Sequence(Write(table_format, statement, guarded), phase)
                    if is_selected(one.name, select):
                        yield one
