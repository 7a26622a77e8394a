"""The runs of the paper's experiment (its table III), and additional ones.

A plan is a list of cells, and a cell is a number of runs that differ only by their number. Timed runs have the machine
to themselves, one after the other; all others may run side by side.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DATASETS", "FORMATS", "PLANS", "Cell", "Format", "KillPhase", "Run", "runs_of"]

Format = Literal["delta", "iceberg"]
KillPhase = Literal["", "data", "commit"]
"""The paper's KILL_AFTER_PHASE: no kill; after the data, before any metadata; in the commit itself."""

FORMATS: Final[tuple[Format, ...]] = ("delta", "iceberg")
DATASETS: Final = {"22k": 22_248, "100k": 100_000, "500k": 500_000}
"""Rows by the paper's name for the size."""


@dataclass(frozen=True, slots=True)
class Cell:
    """`runs` equal runs. Part A compares the formats, B the sizes; O is additional, and not among the 860.

    `fails`: the script raises an error after its statement, which has to be undone (`commit_point="success"`).
    """

    part: Literal["A", "B", "O"]
    table_format: Format
    dataset: str
    kill_phase: KillPhase
    use_safe_writer: bool
    runs: int
    fails: bool = False

    @property
    def name(self) -> str:
        """Its name, and the beginning of its runs' names."""
        what = "fails" if self.fails else self.kill_phase or "baseline"
        guard = "guarded" if self.use_safe_writer else "plain"
        return f"{self.part}-{self.table_format}-{self.dataset}-{what}-{guard}"

    @property
    def is_timed(self) -> bool:
        """Whether its runs need the machine to themselves: part B compares times, also of killed runs."""
        return not self.kill_phase or self.part == "B"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a cell."""

    cell: Cell
    number: int

    @property
    def id(self) -> str:
        """The same in each repetition of a plan: it identifies a finished run."""
        return f"{self.cell.name}-{self.number:03}"


def _paper() -> Iterator[Cell]:
    for one in FORMATS:
        yield Cell("A", one, "22k", "", use_safe_writer=False, runs=50)
        yield Cell("A", one, "22k", "data", use_safe_writer=False, runs=75)
        yield Cell("A", one, "22k", "commit", use_safe_writer=False, runs=75)
        yield Cell("A", one, "22k", "data", use_safe_writer=True, runs=25)
        yield Cell("A", one, "22k", "commit", use_safe_writer=True, runs=25)
    for one in FORMATS:
        for size in DATASETS:
            yield Cell("B", one, size, "", use_safe_writer=False, runs=30)
            yield Cell("B", one, size, "data", use_safe_writer=False, runs=30)


def _ours() -> Iterator[Cell]:
    for one in FORMATS:
        yield Cell("O", one, "22k", "", use_safe_writer=True, runs=50)
        yield Cell("O", one, "22k", "", use_safe_writer=True, runs=25, fails=True)


PLANS: Final = {"paper": (*_paper(),), "ours": (*_ours(),), "all": (*_paper(), *_ours())}
"""`paper`: its 860 runs. `ours`: guarded baselines, and writes that are undone after their commit."""


def runs_of(plan: str, *, scale: float, seed: int) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """Return a plan's runs, with `scale` times the runs of each cell, at least one: the timed ones and the others.

    The seed determines their random order, so that slow changes of the machine affect all cells alike.
    """
    runs = [Run(cell, number) for cell in PLANS[plan] for number in range(1, math.ceil(cell.runs * scale) + 1)]
    random.Random(seed).shuffle(runs)  # noqa: S311 - an order, no secret
    return tuple(run for run in runs if run.cell.is_timed), tuple(run for run in runs if not run.cell.is_timed)
