"""Play the schedules of many seeds in several processes; finished blocks of seeds are skipped."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from tests.lab.campaign.record import SCHEDULES, ScheduleBlock, ScheduleRecord
from tests.lab.campaign.schedules.plan import Plan
from tests.lab.campaign.schedules.playing import play
from tests.lab.campaign.schedules.shrinking import shrunk
from tests.lab.campaign.schedules.surroundings import surroundings
from tests.lab.campaign.workers import all_of, workers
from tests.lab.results import append, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tests.lab.campaign.schedules.playing import Played

__all__ = ["BLOCK", "blocks", "replay", "run"]

BLOCK: Final = 500
"""How many seeds a line of the results is about."""


def blocks(first: int, count: int) -> list[tuple[int, int]]:
    """Return seeds in blocks, each as its first seed and their number."""
    return [(seed, min(BLOCK, first + count - seed)) for seed in range(first, first + count, BLOCK)]


def run(
    folder: Path,
    chosen: Iterable[tuple[int, int]],
    *,
    jobs: int,
    until: float | None,
    s3: str,
    progress: Callable[[], object],
) -> bool:
    """Play what is missing of the blocks; return whether all is done.

    No block begins after `until`, in epoch seconds. `s3`: of no use here; other tiers have one.
    """
    done = {(one.first, one.seeds) for one in read(folder / SCHEDULES, ScheduleBlock)}
    with workers(jobs) as pool:
        return all(all_of([pool.submit(_played, folder, *one, until) for one in chosen if one not in done], progress))


def replay(name: str) -> ScheduleRecord:
    """Play a schedule again. Raises `ValueError` if the name is none."""
    plan = Plan.parse(name)
    with surroundings():
        return _record(play(plan, traced=True), None)


def _played(folder: Path, first: int, seeds: int, until: float | None) -> bool:
    if until is not None and time.time() >= until:
        return False
    began = time.process_time()
    outcomes: Counter[str] = Counter()
    requests, broken = 0, []
    with surroundings():
        for seed in range(first, first + seeds):
            played = play(Plan.of(seed))
            outcomes.update(call.outcome for call in played.calls)
            requests += played.requests
            if played.broken:
                broken.append(_shrunk(played))
    seconds = round(time.process_time() - began, 3)
    line = ScheduleBlock(
        first=first, seeds=seeds, requests=requests, outcomes=dict(outcomes), broken=broken, seconds=seconds
    )
    append(folder / SCHEDULES, line)
    return True


def _shrunk(played: Played) -> ScheduleRecord:
    kinds = {one.kind for one in played.broken}
    smallest = shrunk(played.plan, lambda plan: any(one.kind in kinds for one in play(plan).broken))
    return _record(play(smallest), played.plan)


def _record(played: Played, whole: Plan | None) -> ScheduleRecord:
    return ScheduleRecord(
        schedule=played.plan.name,
        whole=played.plan.name if whole is None else whole.name,
        members=[str(one) for one in played.plan.members],
        outcomes=[f"batch {call.batch}: {call.outcome}" for call in played.calls],
        violations=sorted({one.kind for one in played.broken}),
        what=[one.what for one in played.broken],
        trace=played.trace,
    )
