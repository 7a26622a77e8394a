"""Play a schedule to its end, and judge what happened."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.lab.campaign.schedules.judging import judge
from tests.lab.campaign.schedules.simulation import Simulation
from tests.lab.campaign.schedules.stage import Stage

if TYPE_CHECKING:
    from tests.lab.campaign.schedules.jobs import Call, Look
    from tests.lab.campaign.schedules.plan import Plan
    from tests.lab.campaign.schedules.witness import Broken

__all__ = ["Played", "play"]

_IN_MEMORY: Final = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Played:
    """A schedule after its end. `requests`: of all processes. `versions`: of the table. `trace`: a line for each
    request and each end of a call, if it was asked for.
    """

    plan: Plan
    broken: list[Broken]
    calls: list[Call]
    looks: list[Look]
    requests: int
    versions: int
    trace: list[str]


def play(plan: Plan, *, traced: bool = False) -> Played:
    """Play a schedule. The caller has entered `surroundings()`."""
    with ExitStack() as stack, Simulation(plan.seed) as world:
        world.trace = [] if traced else None
        stage = Stage(plan, world, Path(_folder().name), stack)
        stage.play()
        judge(stage)
        witness = stage.witness
        return Played(
            plan, witness.broken, stage.calls, stage.looks, stage.s3.requests, witness.head + 1, world.trace or []
        )


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Return this process's folder for journals, in memory if the machine has such a place."""
    return tempfile.TemporaryDirectory(prefix="soal-schedules-", dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None)
