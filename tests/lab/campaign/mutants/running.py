"""Try mutants, each in a copy of the working tree; the tests must pass there without a change first."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from scripts.provision.place import ROOT
from soal.console.problem import Failure
from tests.lab.bench.record import about
from tests.lab.campaign.mutants.trees import compile_java, copied
from tests.lab.campaign.mutants.trials import Trial, tried
from tests.lab.campaign.record import MUTANTS, MutantRecord
from tests.lab.campaign.running import MANIFEST
from tests.lab.campaign.selection import is_selected
from tests.lab.campaign.workers import all_of, workers
from tests.lab.results import append, begin, read

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.lab.campaign.mutants.listing import Mutant

__all__ = ["ControlError", "run", "selected"]

_LIMIT_S: Final = 600.0


class ControlError(Exception):
    """The tests fail without a mutant, so a failure with one proves nothing."""


def selected(mutants: Sequence[Mutant], select: str) -> tuple[Mutant, ...]:
    """Return the mutants that the words select. Raises `ValueError` if there are none."""
    if chosen := tuple(one for one in mutants if is_selected(one.name, select)):
        return chosen
    raise ValueError(f"{select!r} selects no mutant")


def run(
    folder: Path, mutants: Sequence[Mutant], *, jobs: int, progress: Callable[[int], None] = lambda _: None
) -> tuple[MutantRecord, ...]:
    """Try the mutants that have no result in the folder yet, or an error; return all results, in the mutants' order.

    `progress` gets the number of results. Before the first trial, it raises `OtherResultsError`, `MutantError` if a
    mutant does not fit the code, and `ControlError`.
    """
    begin(folder / MANIFEST, about())
    names = {one.name for one in mutants}

    def found() -> dict[str, MutantRecord]:
        return {one.name: one for one in read(folder / MUTANTS, MutantRecord) if one.name in names}

    done = {name for name, one in found().items() if one.outcome != "error"}
    if missing := [one for one in mutants if one.name not in done]:
        for one in missing:
            one.changed(ROOT)
        with workers(jobs) as pool:
            all_of([pool.submit(control, missing)], lambda: progress(len(done)))
            all_of([pool.submit(trial, folder, one) for one in missing], lambda: progress(len(found())))
    results = found()
    return tuple(results[one.name] for one in mutants)


def control(mutants: Sequence[Mutant]) -> None:
    """Run all tests of the mutants, each once, on the unchanged code. Raises `ControlError`."""
    targets = tuple(dict.fromkeys(target for one in mutants for target in one.tests))
    ended = _tried(None, targets, compiles=any(one.is_java for one in mutants), limit_s=_LIMIT_S * len(targets))
    if ended.failed or ended.error:
        raise ControlError(f"without a mutant the tests do not pass: {ended.failed or ended.error}")


def trial(folder: Path, mutant: Mutant) -> None:
    """Try one mutant, and append its result."""
    began = time.monotonic()
    ended = _tried(mutant, mutant.tests, compiles=mutant.is_java, limit_s=_LIMIT_S)
    record = MutantRecord(
        name=mutant.name,
        guard=mutant.guard,
        file=mutant.file,
        outcome="error" if ended.error else "caught" if ended.failed else "survived",
        by=ended.failed,
        seconds=round(time.monotonic() - began, 1),
        error=ended.error,
    )
    append(folder / MUTANTS, record)


def _tried(change: Mutant | None, targets: tuple[str, ...], *, compiles: bool, limit_s: float) -> Trial:
    with copied() as tree:
        if change is not None:
            change.write(tree)
        if compiles:
            try:
                compile_java(tree)
            except Failure as error:
                return Trial(error=f"the log store was not compiled: {error}")
        return tried(tree, targets, limit_s)
