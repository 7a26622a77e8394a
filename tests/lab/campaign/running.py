"""Carry out a tier of the campaign in a folder of results."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from scripts.emulator.s3_backends import BACKENDS
from tests.lab.bench.record import about
from tests.lab.campaign.live import running as live
from tests.lab.campaign.live.cases import Case, sequences
from tests.lab.campaign.live.chance import ChanceCase, chance_cases
from tests.lab.campaign.record import CASES, SCENARIO_RESULTS, SCHEDULES, SCRIPT_RESULTS, STATES, ScenarioRecord
from tests.lab.campaign.replay import running as replayed
from tests.lab.campaign.replay.recording import subjects
from tests.lab.campaign.replay.replaying import CrashState
from tests.lab.campaign.scenarios import running as scenarios
from tests.lab.campaign.scenarios.listing import FILES
from tests.lab.campaign.schedules import running as schedules
from tests.lab.campaign.selection import is_selected
from tests.lab.campaign.wrong import running as wrong
from tests.lab.campaign.wrong.listing import SCRIPTS, selected
from tests.lab.results import begin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.lab.campaign.record import CaseRecord, ScheduleRecord, ScriptRecord, StateRecord

__all__ = ["MANIFEST", "Tier", "is_broken", "replay", "run"]

Tier = Literal["live", "replay", "random", "scenarios", "schedules", "scripts"]
MANIFEST: Final = "manifest.json"


def run(
    folder: Path,
    tier: Tier,
    *,
    select: str,
    jobs: int,
    budget_s: float | None,
    s3: str = BACKENDS[0],
    seed: int = 1,
    faults: int = 1_000,
    seeds: int = 10_000,
    progress: Callable[[int], None] = lambda _: None,
) -> bool:
    """Carry out what is missing of the writes that `select` names; return whether all is done.

    `progress` gets the number of results. Nothing begins after `budget_s` seconds. `s3`: the backend. `seed` and
    `faults` (the number of guarded writes) are for the tier `random`, `seed` (the first one) and `seeds` (their number)
    for the tier `schedules`.

    Raises `OtherResultsError`, and `ValueError` if nothing is selected.
    """
    chosen: Any
    carry_out: Any
    if tier == "live":
        chosen, carry_out, results = [*sequences(select)], live.run, CASES
    elif tier == "random":
        chosen = [one for one in chance_cases(seed, range(1, faults + 1)) if is_selected(one.name, select)]
        carry_out, results = live.run_by_chance, CASES
    elif tier == "replay":
        chosen, carry_out, results = subjects(select), replayed.run, STATES
    elif tier == "schedules":
        chosen, carry_out, results = schedules.blocks(seed, seeds), schedules.run, SCHEDULES
    elif tier == "scripts":
        chosen, carry_out, results = selected(select), wrong.run, SCRIPT_RESULTS
    else:
        chosen, carry_out, results = FILES, partial(scenarios.run, select=select), SCENARIO_RESULTS
    if not chosen:
        raise ValueError(f"{select!r} selects no write")
    begin(folder / MANIFEST, {**about(), "s3": s3})
    until = None if budget_s is None else time.time() + budget_s

    def look() -> None:
        progress(_lines(folder / results))

    return bool(carry_out(folder, chosen, jobs=jobs, until=until, s3=s3, progress=look))


def replay(
    name: str, folder: Path | None, s3: str = BACKENDS[0]
) -> CaseRecord | StateRecord | ScenarioRecord | ScheduleRecord | ScriptRecord:
    """Carry out a case, scenario, schedule or script again, or settle a state of the recording in a folder, or else of
    a new one.

    Raises `ValueError`.
    """
    if name.startswith("random-"):
        return live.replay(ChanceCase.parse(name), s3)
    if name.startswith("schedule-"):
        return schedules.replay(name)
    if name.startswith("tests/"):
        return scenarios.replay(name, s3)
    if name in SCRIPTS:
        return wrong.replay(name, s3)
    try:
        state = CrashState.parse(name)
    except ValueError:
        return live.replay(Case.parse(name), s3)
    return replayed.replay(state, folder, s3)


def is_broken(record: CaseRecord | StateRecord | ScenarioRecord | ScheduleRecord | ScriptRecord) -> bool:
    """Return whether a promise was broken, or the case had no result."""
    if isinstance(record, ScenarioRecord):
        return record.outcome != "kept"
    return bool(record.violations)


def _lines(path: Path) -> int:
    """Count the complete lines of a file to which other processes append."""
    return path.read_bytes().count(b"\n") if path.exists() else 0
