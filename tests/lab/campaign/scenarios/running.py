"""Run scenarios, each file of tests in a process of its own."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scripts.provision.place import ROOT
from tests.lab.campaign.pytest_process import run_pytest
from tests.lab.campaign.record import SCENARIO_RESULTS, ScenarioRecord
from tests.lab.campaign.scenarios.listing import is_chosen, subject_of
from tests.lab.campaign.workers import all_of, workers
from tests.lab.results import read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["replay", "run"]

_SAID_MAX: Final = 4000
_ENDED: Final = frozenset({0, 1, 5})
"""pytest's exit codes: all passed, some failed, none collected."""
_INTERRUPTED: Final = 2
_NO_SUCH_TEST: Final = 4


def run(
    folder: Path,
    files: Iterable[str],
    *,
    select: str,
    jobs: int,
    until: float | None,
    s3: str,
    progress: Callable[[], object],
) -> bool:
    """Run the selected scenarios without a result; return whether all have one.

    No test begins after `until`, in epoch seconds. `s3`: the backend. Raises `ValueError` if nothing is selected,
    `RuntimeError` if pytest itself fails.
    """
    arguments = (*_options(folder.resolve(), s3, select), *(() if until is None else (f"--campaign-until={until}",)))
    with workers(jobs) as pool:
        finished = all(all_of([pool.submit(_run, (*arguments, file)) for file in files], progress))
    results = read(folder / SCENARIO_RESULTS, ScenarioRecord)
    if finished and not any(is_chosen(one.test, select) for one in results):
        raise ValueError(f"{select!r} selects no scenario")
    return finished


def replay(test: str, s3: str) -> ScenarioRecord:
    """Run one scenario. Raises `ValueError` if no scenario has the name."""
    subject_of(test)
    with tempfile.TemporaryDirectory(prefix="soal-scenario-") as folder:
        _run((*_options(Path(folder), s3), test))
        found = read(Path(folder) / SCENARIO_RESULTS, ScenarioRecord)
    if len(found) != 1:
        raise ValueError(f"{test!r} names {len(found)} scenarios")
    return found[0]


def _options(folder: Path, s3: str, select: str = "") -> tuple[str, ...]:
    plugin = "tests.lab.campaign.scenarios.reporting"
    return ("-p", plugin, f"--campaign-results={folder}", f"--campaign-select={select}", f"--s3={s3}")


def _run(arguments: Iterable[str]) -> bool:
    """Return whether all tests have run. Raises `ValueError` if there is no such test."""
    with tempfile.TemporaryDirectory(prefix="soal-scenarios-") as folder:
        said = Path(folder) / "said"
        code = run_pytest(ROOT, arguments, said)
        tail = said.read_text(encoding="utf-8", errors="replace")[-_SAID_MAX:]
    if code == _NO_SUCH_TEST:
        raise ValueError(f"pytest finds no such test: {tail.strip().splitlines()[-1]}")
    if code not in (*_ENDED, _INTERRUPTED):
        raise RuntimeError(f"pytest ended with {code}: {tail}")
    return code in _ENDED
