"""Count what a campaign has found: with the guard, and without it beside."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scripts.campaign.live.cases import Case
from scripts.campaign.live.chance import ChanceCase
from scripts.campaign.record import VIOLATIONS
from scripts.campaign.replay.replaying import CrashState
from scripts.experiment.estimates import upper_bound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scripts.campaign.record import CaseRecord, StateRecord, Violation
    from scripts.campaign.running import Tier

__all__ = ["Count", "broken_in", "counts"]

_ROWS: Final = frozenset({"lost", "doubled", "gap", "changed"})


@dataclass(frozen=True, slots=True)
class Count:
    """The cases of one tier and format, with or without the guard. `broken`: by what they break.

    `broken_cases`: those with any of it; of writes without a guard only those with rows that are wrong, since no stock
    commit promises the rest. `exposed`: those whose fault came between the first data file and the commit's answer;
    a crash state has no moment.
    `upper_bound`: that of the rate of broken ones, with 95 %, if there was none; only for faults by chance.
    """

    tier: Tier
    table_format: str
    guarded: bool
    cases: int
    broken_cases: int
    exposed: int | None
    upper_bound: float | None
    broken: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Found:
    tier: Tier
    table_format: str
    guarded: bool
    name: str
    violations: Sequence[Violation]
    exposed: bool = False


def counts(cases: Sequence[CaseRecord], states: Sequence[StateRecord]) -> tuple[Count, ...]:
    """Count the cases that were hit and the states, of each format, the guarded ones first."""
    groups: dict[tuple[Tier, str, bool], list[_Found]] = defaultdict(list)
    for one in _found(cases, states):
        groups[one.tier, one.table_format, not one.guarded].append(one)
    found = []
    for (tier, table_format, plain), ones in sorted(groups.items()):
        broken = Counter(what for one in ones for what in one.violations)
        counted = _ROWS if plain else set(VIOLATIONS)
        bad = sum(bool(counted & {*one.violations}) for one in ones)
        by_kind: dict[str, int] = {name: broken[name] for name in VIOLATIONS}
        bound = upper_bound(len(ones)) if tier == "random" and not bad else None
        exposed = None if tier == "replay" else sum(one.exposed for one in ones)
        found.append(Count(tier, table_format, not plain, len(ones), bad, exposed, bound, by_kind))
    return tuple(found)


def broken_in(cases: Sequence[CaseRecord], states: Sequence[StateRecord]) -> list[str]:
    """Return the names of those with a guard that broke a promise."""
    return [one.name for one in _found(cases, states) if one.guarded and one.violations]


def _found(cases: Sequence[CaseRecord], states: Sequence[StateRecord]) -> Iterator[_Found]:
    for case in cases:
        tier: Tier = "random" if case.case.startswith("random-") else "live"
        write = (ChanceCase if tier == "random" else Case).parse(case.case).write
        if case.hit or (case.violations and (write.guarded or "harness_error" in case.violations)):
            yield _Found(tier, write.table_format, write.guarded, case.case, case.violations, case.exposed is True)
    for state in states:
        table_format = CrashState.parse(state.state).subject.partition("-")[0]
        yield _Found("replay", table_format, guarded=True, name=state.state, violations=state.violations)
