"""Carry out the campaign: each sequence in a worker process, request after request, until a case hits none."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from tests.lab.campaign.live.laboratory import Laboratory
from tests.lab.campaign.record import CASES, CaseRecord
from tests.lab.campaign.workers import all_of, workers
from tests.lab.results import append, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tests.lab.campaign.live.cases import Case, Sequence
    from tests.lab.campaign.live.chance import ChanceCase

__all__ = ["replay", "run", "run_by_chance"]

_REQUESTS_MAX: Final = 60


def run(
    folder: Path,
    chosen: Iterable[Sequence],
    *,
    jobs: int,
    until: float | None,
    s3: str,
    progress: Callable[[], object],
) -> bool:
    """Carry out what is missing of the sequences; return whether all are finished.

    No case begins after `until`, in epoch seconds. `s3`: the backend.
    """
    done = {one.case: one.hit for one in read(folder / CASES, CaseRecord) if _is_told(one)}
    with workers(jobs) as pool:
        return all(all_of([pool.submit(_sequence, one, folder, done, until, s3) for one in chosen], progress))


def run_by_chance(
    folder: Path,
    chosen: Iterable[ChanceCase],
    *,
    jobs: int,
    until: float | None,
    s3: str,
    progress: Callable[[], object],
) -> bool:
    """Carry out what is missing of the random cases; return whether all are done."""
    done = {one.case for one in read(folder / CASES, CaseRecord) if one.tells}
    left = [one for one in chosen if one.name not in done]
    with workers(jobs) as pool:
        return all(all_of([pool.submit(_some, left[part::jobs], folder, until, s3) for part in range(jobs)], progress))


def _is_told(one: CaseRecord) -> bool:
    """Return whether a case needs no other run. Only a write that succeeded ends a sequence."""
    return one.tells and (one.hit or not one.violations)


def _some(cases: Iterable[ChanceCase], folder: Path, until: float | None, s3: str) -> bool:
    """Carry out cases; return whether none is left."""
    with Laboratory(s3) as laboratory:
        for case in cases:
            if until is not None and time.time() >= until:
                return False
            append(folder / CASES, laboratory.carry_out(case))
    return True


def replay(case: Case | ChanceCase, s3: str) -> CaseRecord:
    """Carry out one case again."""
    with Laboratory(s3) as laboratory:
        return laboratory.carry_out(case)


def _sequence(one: Sequence, folder: Path, done: dict[str, bool], until: float | None, s3: str) -> bool:
    """Carry out the cases of a sequence; return whether it is finished."""
    with Laboratory(s3) as laboratory:
        for nth in range(1, _REQUESTS_MAX):
            case = one.case(nth)
            hit = done.get(case.name)
            if hit is None:
                if until is not None and time.time() >= until:
                    return False
                record = laboratory.carry_out(case)
                append(folder / CASES, record)
                hit = record.hit
                if not hit and record.violations:
                    return False
            if not hit:
                return True
    raise RuntimeError(f"{one.name} has {_REQUESTS_MAX} requests or more")
