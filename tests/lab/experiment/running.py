"""Carry out a plan: the timed runs one after the other, then the others side by side. Finished runs are skipped."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.lab.bench.record import about
from tests.lab.experiment.data import generated, given
from tests.lab.experiment.laboratory import Laboratory
from tests.lab.experiment.plan import DATASETS, runs_of
from tests.lab.experiment.record import RUNS, RunRecord
from tests.lab.results import append, begin, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.lab.experiment.data import Dataset
    from tests.lab.experiment.plan import Run

__all__ = ["MANIFEST", "Settings", "run"]

MANIFEST: Final = "manifest.json"
_WARM_UP: Final = 2
"""Uncounted runs before the first timed one: they warm the machine's caches."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The parameters of the results. `small`: a file to use instead of the generated smallest one."""

    plan: str
    scale: float
    seed: int
    small: str | None


def run(settings: Settings, folder: Path, *, jobs: int, progress: Callable[[int, int], None] = lambda *_: None) -> None:
    """Carry out what is missing in `folder`; `progress` gets the number of runs done, and of all.

    Raises `OtherResultsError`, and `ValueError` if the given file is no CSV file.
    """
    datasets = _Datasets(settings.small)
    _begin(settings, datasets, folder)
    timed, others = runs_of(settings.plan, scale=settings.scale, seed=settings.seed)
    results = folder / RUNS
    records = read(results, RunRecord)
    done = {record.run_id for record in records}
    left = [one for one in (*timed, *others) if one.id not in done]
    if not left:
        return
    traced = {record.cell for record in records if record.requests}
    lock = threading.Lock()
    needed = {name: datasets.of(name) for name in sorted({one.cell.dataset for one in left})}
    with Laboratory(needed) as laboratory:

        def carry_out(one: Run) -> None:
            with lock:
                keeps_requests = one.cell.name not in traced
                traced.add(one.cell.name)
            record = laboratory.carry_out(one, keeps_requests=keeps_requests)
            with lock:
                append(results, record)
                done.add(one.id)
                progress(len(done), len(timed) + len(others))

        progress(len(done), len(timed) + len(others))
        alone = [one for one in left if one.cell.is_timed]
        for one in alone[:_WARM_UP]:
            laboratory.carry_out(one, keeps_requests=False)
        for one in alone:
            carry_out(one)
        with ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(carry_out, one) for one in left if not one.cell.is_timed]
            try:
                for future in as_completed(futures):
                    future.result()
            finally:
                pool.shutdown(cancel_futures=True)


class _Datasets:
    def __init__(self, small: str | None) -> None:
        self._small = None if small is None else given(Path(small))

    def of(self, name: str) -> Dataset:
        if name == "22k" and self._small is not None:
            return self._small
        return generated(DATASETS[name])

    @property
    def digest(self) -> str | None:
        """The hash of the given file."""
        return None if self._small is None else hashlib.sha256(self._small.body).hexdigest()


def _begin(settings: Settings, datasets: _Datasets, folder: Path) -> None:
    """Write the manifest, or compare it with the existing one."""
    small = None if settings.small is None else Path(settings.small).name
    wanted: dict[str, Any] = {**asdict(settings), "small": small, "small_sha256": datasets.digest, **about()}
    begin(folder / MANIFEST, wanted)
