"""Carry out the scripts without a result, each worker its share in one JVM."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.lab.campaign.record import SCRIPT_RESULTS, ScriptRecord
from tests.lab.campaign.workers import all_of, workers
from tests.lab.campaign.wrong.laboratory import WrongLaboratory
from tests.lab.campaign.wrong.listing import script_of
from tests.lab.results import append, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

__all__ = ["replay", "run"]


def run(
    folder: Path,
    chosen: Iterable[str],
    *,
    jobs: int,
    until: float | None,
    s3: str,
    progress: Callable[[], object],
) -> bool:
    """Carry out what is missing of the scripts; return whether all are done.

    None begins after `until`, in epoch seconds. `s3`: the backend.
    """
    done = {one.script for one in read(folder / SCRIPT_RESULTS, ScriptRecord) if one.tells}
    left = [name for name in chosen if name not in done]
    with workers(jobs) as pool:
        shares = [left[part::jobs] for part in range(jobs)]
        return all(all_of([pool.submit(_some, share, folder, until, s3) for share in shares if share], progress))


def replay(name: str, s3: str) -> ScriptRecord:
    """Carry out one script again. Raises `ValueError` if no script has the name."""
    script = script_of(name)
    with WrongLaboratory(s3) as laboratory:
        return laboratory.carry_out(script)


def _some(names: Iterable[str], folder: Path, until: float | None, s3: str) -> bool:
    """Carry out scripts; return whether none is left."""
    with WrongLaboratory(s3) as laboratory:
        for name in names:
            if until is not None and time.time() >= until:
                return False
            append(folder / SCRIPT_RESULTS, laboratory.carry_out(script_of(name)))
    return True
