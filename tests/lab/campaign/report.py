"""Count the findings of a campaign: with the guard, and without it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from tests.lab.campaign.live.cases import Case
from tests.lab.campaign.live.chance import ChanceCase
from tests.lab.campaign.record import (
    CASES,
    SCENARIO_RESULTS,
    SCHEDULES,
    SCRIPT_RESULTS,
    STATES,
    VIOLATIONS,
    CaseRecord,
    ScenarioRecord,
    ScheduleBlock,
    ScriptRecord,
    StateRecord,
)
from tests.lab.campaign.replay.replaying import CrashState
from tests.lab.campaign.scenarios.listing import is_chosen
from tests.lab.campaign.selection import is_selected
from tests.lab.experiment.estimates import upper_bound
from tests.lab.results import read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from tests.lab.campaign.record import Violation
    from tests.lab.campaign.running import Tier

__all__ = ["Count", "Results", "broken_in", "counts"]

_OF_SCENARIOS: Final[dict[str, tuple[Violation, ...]]] = {
    "kept": (),
    "broken": ("scenario",),
    "error": ("harness_error",),
}
_Line = TypeVar("_Line", CaseRecord, ScenarioRecord, ScriptRecord)
_ROWS: Final = frozenset({"lost", "doubled", "gap", "changed"})


@dataclass(frozen=True, slots=True)
class Count:
    """The cases of one tier and subject, with or without the guard. `broken`: counts by broken promise.

    `subject`: the table's format, the scenario's subject, or the script's format and family. A scenario's cases are the
    faults that it made; a scenario that broke a promise is one broken case. A schedule is one case.

    `broken_cases`: cases with any broken promise; of unguarded writes only those with wrong rows, since stock commits
    promise nothing else. `exposed`: cases whose fault came between the first data file and the commit's answer; a crash
    state has no moment. `upper_bound`: the 95 % bound of the rate of broken cases if there was none; only for random
    faults.
    """

    tier: Tier
    subject: str
    guarded: bool
    cases: int
    broken_cases: int
    exposed: int | None
    upper_bound: float | None
    broken: dict[str, int]


@dataclass(frozen=True, slots=True)
class Results:
    """The lines of a folder."""

    cases: Sequence[CaseRecord] = ()
    states: Sequence[StateRecord] = ()
    scenarios: Sequence[ScenarioRecord] = ()
    scripts: Sequence[ScriptRecord] = ()
    schedules: Sequence[ScheduleBlock] = ()

    @classmethod
    def of(cls, folder: Path, select: str = "") -> Results:
        """Read the lines that `select` names, in the words of `scripts/lab faults run`.

        If a case was carried out again, the first line with a result counts: a broken promise stays broken.
        """
        cases = _telling(read(folder / CASES, CaseRecord), lambda one: one.case)
        scenarios = _telling(read(folder / SCENARIO_RESULTS, ScenarioRecord), lambda one: one.test)
        scripts = _telling(read(folder / SCRIPT_RESULTS, ScriptRecord), lambda one: one.script)
        return cls(
            [one for one in cases if is_selected(one.case, select)],
            [one for one in read(folder / STATES, StateRecord) if is_selected(one.state, select)],
            [one for one in scenarios if is_chosen(one.test, select)],
            [one for one in scripts if is_selected(one.script, select)],
            read(folder / SCHEDULES, ScheduleBlock),
        )

    @property
    def effort(self) -> dict[str, float] | None:
        """The number of schedules and of their requests, and the seconds of one core; None without any."""
        if not self.schedules:
            return None
        names = ("seeds", "requests", "seconds")
        return {name: round(sum(getattr(one, name) for one in self.schedules), 1) for name in names}

    @property
    def skipped(self) -> int:
        """The number of skipped scenarios, which count neither way."""
        return sum(one.outcome == "skipped" for one in self.scenarios)


@dataclass(frozen=True, slots=True)
class _Found:
    tier: Tier
    subject: str
    guarded: bool
    name: str
    violations: Sequence[Violation]
    exposed: bool = False
    faults: int = 1


def counts(results: Results) -> tuple[Count, ...]:
    """Count the cases that were hit, the states and the scenarios, by subject, the guarded ones first."""
    groups: dict[tuple[Tier, str, bool], list[_Found]] = defaultdict(list)
    for one in _found(results):
        groups[one.tier, one.subject, not one.guarded].append(one)
    found = []
    for (tier, subject, plain), ones in sorted(groups.items()):
        broken = Counter(what for one in ones for what in one.violations)
        counted = _ROWS if plain else set(VIOLATIONS)
        bad = sum(bool(counted & {*one.violations}) for one in ones)
        by_kind: dict[str, int] = {name: broken[name] for name in VIOLATIONS}
        bound = upper_bound(len(ones)) if tier == "random" and not bad else None
        exposed = sum(one.exposed for one in ones) if tier in ("live", "random") else None
        cases = sum(one.faults for one in ones)
        found.append(Count(tier, subject, not plain, cases, bad, exposed, bound, by_kind))
    return tuple(found)


def broken_in(results: Results) -> list[str]:
    """Return the names of the guarded cases that broke a promise."""
    return [one.name for one in _found(results) if one.guarded and one.violations]


def _telling(lines: Iterable[_Line], name: Callable[[_Line], str]) -> Iterable[_Line]:
    found: dict[str, _Line] = {}
    for line in lines:
        if name(line) not in found or not found[name(line)].tells:
            found[name(line)] = line
    return found.values()


def _found(results: Results) -> Iterator[_Found]:
    for case in results.cases:
        tier: Tier = "random" if case.case.startswith("random-") else "live"
        write = (ChanceCase if tier == "random" else Case).parse(case.case).write
        if case.hit or (case.violations and (write.guarded or "harness_error" in case.violations)):
            yield _Found(tier, write.table_format, write.guarded, case.case, case.violations, case.exposed is True)
    for state in results.states:
        table_format = CrashState.parse(state.state).subject.partition("-")[0]
        yield _Found("replay", table_format, guarded=True, name=state.state, violations=state.violations)
    for one in results.scenarios:
        if one.outcome != "skipped":
            broken = _OF_SCENARIOS[one.outcome]
            yield _Found("scenarios", one.subject, guarded=True, name=one.test, violations=broken, faults=one.faults)
    for block in results.schedules:
        if kept := block.seeds - len(block.broken):
            yield _Found("schedules", "delta", guarded=True, name="", violations=(), faults=kept)
        for schedule in block.broken:
            name, broken = schedule.schedule, tuple(schedule.violations)
            yield _Found("schedules", "delta", guarded=True, name=name, violations=broken)
    for script in results.scripts:
        subject = f"{script.format} {script.family}"
        yield _Found("scripts", subject, guarded=True, name=script.script, violations=script.violations)
