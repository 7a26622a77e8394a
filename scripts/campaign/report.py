"""Count what a campaign has found: with the guard, and without it beside."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scripts.campaign.cases import Case
from scripts.campaign.record import VIOLATIONS
from scripts.experiment.estimates import upper_bound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scripts.campaign.record import CaseRecord

__all__ = ["Count", "counts"]


@dataclass(frozen=True, slots=True)
class Count:
    """The cases of one format, with or without the guard. `broken`: cases by what they have broken.

    `bound`: the 95 % upper bound of the rate of broken cases, if none was.
    """

    table_format: str
    guarded: bool
    cases: int
    broken_cases: int
    broken: dict[str, int]
    bound: float | None

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "table_format": self.table_format,
            "guarded": self.guarded,
            "cases": self.cases,
            "broken_cases": self.broken_cases,
            "broken": self.broken,
            "bound": self.bound,
        }


def counts(records: Sequence[CaseRecord]) -> tuple[Count, ...]:
    """Count the cases that were hit, of each format, the guarded ones first."""
    groups: dict[tuple[str, bool], list[CaseRecord]] = {}
    for record in records:
        write = Case.parse(record.case).sequence
        if record.hit or record.violations:
            groups.setdefault((write.table_format, write.guarded), []).append(record)
    found = []
    for (table_format, guarded), cases in sorted(groups.items(), key=lambda one: (one[0][0], not one[0][1])):
        broken = Counter(one for case in cases for one in case.violations)
        bad = sum(bool(case.violations) for case in cases)
        by_kind: dict[str, int] = {name: broken[name] for name in VIOLATIONS}
        found.append(Count(table_format, guarded, len(cases), bad, by_kind, None if bad else upper_bound(len(cases))))
    return tuple(found)
