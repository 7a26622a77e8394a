"""Carry out the campaign: each sequence in a worker process, request after request, until one is hit no more."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import FIRST_EXCEPTION, ProcessPoolExecutor, wait
from typing import TYPE_CHECKING, Final

from handler.process.tree import die_with_parent
from scripts.bench.record import about
from scripts.campaign.cases import sequences
from scripts.campaign.laboratory import Laboratory
from scripts.campaign.record import CASES, CaseRecord
from scripts.results import append, begin, read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scripts.campaign.cases import Case, Sequence

__all__ = ["MANIFEST", "replay", "run"]

MANIFEST: Final = "manifest.json"
_REQUESTS_MAX: Final = 60
_LOOK_S: Final = 1.0


def run(
    folder: Path, *, select: str, jobs: int, budget_s: float | None, progress: Callable[[int], None] = lambda _: None
) -> bool:
    """Carry out what is missing of the sequences that `select` names; tell whether all are finished.

    `progress` hears the number of cases that are done. No case begins after `budget_s` seconds. Raises
    `OtherResultsError`, and `ValueError` if nothing is selected.
    """
    chosen = [*sequences(select)]
    if not chosen:
        raise ValueError(f"{select!r} selects no write")
    begin(folder / MANIFEST, about())
    # A write that ended before its request is carried out again: only one that ended well ends a sequence.
    done = {one.case: one.hit for one in read(folder / CASES, CaseRecord) if one.hit or not one.violations}
    until = None if budget_s is None else time.time() + budget_s
    # Spawned, since a fork would copy the locks of this process's threads. A worker ends with us, however we end.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=spawn, initializer=die_with_parent) as pool:
        pending = {pool.submit(_sequence, one, folder, done, until) for one in chosen}
        ended: list[bool] = []
        try:
            while pending:
                finished, pending = wait(pending, timeout=_LOOK_S, return_when=FIRST_EXCEPTION)
                ended += [one.result() for one in finished]
                progress(_lines(folder / CASES))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return all(ended)


def _lines(path: Path) -> int:
    """Count the whole lines of a file to which others add."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


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
