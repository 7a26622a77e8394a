"""Carry out a tier of the campaign in a folder of results."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Literal

from scripts.bench.record import about
from scripts.campaign.live import running as live
from scripts.campaign.live.cases import Case, sequences
from scripts.campaign.record import CASES, STATES
from scripts.campaign.replay import running as replayed
from scripts.campaign.replay.recording import subjects
from scripts.campaign.replay.replaying import CrashState
from scripts.results import begin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scripts.campaign.record import CaseRecord, StateRecord

__all__ = ["MANIFEST", "Tier", "replay", "run"]

Tier = Literal["live", "replay"]
MANIFEST: Final = "manifest.json"
_TIERS: Final[dict[Tier, Any]] = {"live": (live.run, CASES), "replay": (replayed.run, STATES)}


def run(
    folder: Path,
    tier: Tier,
    *,
    select: str,
    jobs: int,
    budget_s: float | None,
    progress: Callable[[int], None] = lambda _: None,
) -> bool:
    """Carry out what is missing of the writes that `select` names; tell whether all is done.

    `progress` hears the number of results. Nothing begins after `budget_s` seconds. Raises `OtherResultsError`, and
    `ValueError` if nothing is selected.
    """
    chosen = [*sequences(select)] if tier == "live" else subjects(select)
    if not chosen:
        raise ValueError(f"{select!r} selects no write")
    begin(folder / MANIFEST, about())
    until = None if budget_s is None else time.time() + budget_s
    carry_out, results = _TIERS[tier]
    return bool(carry_out(folder, chosen, jobs=jobs, until=until, progress=lambda: progress(_lines(folder / results))))


def replay(name: str, folder: Path | None) -> CaseRecord | StateRecord:
    """Carry out one case again, or settle one state of the recording in a folder, or else of a new one.

    Raises `ValueError`.
    """
    try:
        state = CrashState.parse(name)
    except ValueError:
        return live.replay(Case.parse(name))
    return replayed.replay(state, folder)


def _lines(path: Path) -> int:
    """Count the whole lines of a file to which others add."""
    return path.read_bytes().count(b"\n") if path.exists() else 0
