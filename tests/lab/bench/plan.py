"""The benchmarks of `scripts/lab bench all`: each with its options, in an order in which none warms up the next.

Each runs in a process of its own. An interrupted run continues: a step whose result for this commit with these options
is in the file of results is not measured again.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scripts.provision.place import ROOT
from tests.lab.bench.record import Record, about, read

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["FULL", "SHORT", "Outcome", "Step", "run"]

_SAID_MAX: Final = 600


@dataclass(frozen=True, slots=True)
class Step:
    """One command line behind `scripts/lab bench`. `needs_docker`: skipped without a built image."""

    words: tuple[str, ...]
    needs_docker: bool = False

    def __str__(self) -> str:
        return shlex.join(self.words)


@dataclass(frozen=True, slots=True)
class Outcome:
    """`problem` is None if the step was measured, or had been before (`kept`)."""

    step: Step
    kept: bool
    problem: str | None


def _steps(*lines: str) -> tuple[Step, ...]:
    return tuple(Step(tuple(line.split()), "--docker" in line or line.startswith("image")) for line in lines)


FULL: Final = _steps(
    "image",
    "start --docker --rounds 7",
    "floor --rounds 3",
    "warm --jobs 100 --rounds 4",
    "guard --rounds 15",
    "start --rounds 4",
    "start --docker --job sql --rounds 4",
    "start --docker --job heavy --rounds 3 --timeout-s 300",
    "guard --rounds 5 --rows 500000 --format delta --latency-ms 0",
    "scale --only writers --rounds 2",
    "scale --only rows --docker --rounds 1",
    "snapshot --rows 100000 --shards 8 --rounds 1",
    "variants --docker --rounds 5",
)
SHORT: Final = _steps("floor --rounds 1", "guard --rounds 1 --rows 100 --latency-ms 0", "settle --rounds 1 --small")
"""One of each kind, as far as it needs neither Docker nor minutes: for the tests, and to check that all of it runs."""


def run(
    steps: Sequence[Step], path: Path, begins: Callable[[Step], None] = lambda _: None, *, docker: bool
) -> tuple[Outcome, ...]:
    """Measure each step and append its line to the file of results; `begins` is called before each measurement."""
    commit = about()["commit"]
    outcomes = []
    for step in steps:
        if any(_is_of(record, step, commit) for record in read(path)):
            outcomes.append(Outcome(step, kept=True, problem=None))
        elif step.needs_docker and not docker:
            outcomes.append(Outcome(step, kept=False, problem="Docker, or the image, is not there: soal image build"))
        else:
            begins(step)
            outcomes.append(Outcome(step, kept=False, problem=_measured(step, path)))
    return tuple(outcomes)


def _measured(step: Step, path: Path) -> str | None:
    command = [sys.executable, "-P", "-m", "tests.lab", "bench", "--record", str(path.resolve()), *step.words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stderr or done.stdout).strip()[-_SAID_MAX:]


def _is_of(record: Record, step: Step, commit: str) -> bool:
    """Return whether a line is of this step and commit; results of a commit with changes are never reused."""
    return record.commit == commit and not commit.endswith("+") and record.command == list(step.words)
