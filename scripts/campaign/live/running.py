"""Carry out the campaign: each sequence in a worker process, request after request, until one is hit no more."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from scripts.campaign.live.laboratory import Laboratory
from scripts.campaign.record import CASES, CaseRecord
from scripts.campaign.workers import all_of, workers
from scripts.results import append, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from scripts.campaign.live.cases import Case, Sequence

__all__ = ["replay", "run"]

_REQUESTS_MAX: Final = 60


def run(
    folder: Path, chosen: Iterable[Sequence], *, jobs: int, until: float | None, progress: Callable[[], object]
) -> bool:
    """Carry out what is missing of the sequences; tell whether all are finished.

    No case begins after `until`, in epoch seconds.
    """
    # A write that ended before its request is carried out again: only one that ended well ends a sequence.
    done = {one.case: one.hit for one in read(folder / CASES, CaseRecord) if one.hit or not one.violations}
    with workers(jobs) as pool:
        return all(all_of([pool.submit(_sequence, one, folder, done, until) for one in chosen], progress))


def replay(case: Case) -> CaseRecord:
    """Carry out one case again."""
    with Laboratory() as laboratory:
        return laboratory.carry_out(case)


def _sequence(one: Sequence, folder: Path, done: dict[str, bool], until: float | None) -> bool:
    """Carry out the cases of a sequence; return whether it has come to its end."""
    with Laboratory() as laboratory:
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
