"""Count what a campaign has found: with the guard, and without it beside."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from scripts.campaign.cases import Case
from scripts.campaign.record import VIOLATIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scripts.campaign.record import CaseRecord

__all__ = ["Count", "counts"]

_ROWS: Final = frozenset({"lost", "doubled", "gap", "changed"})


@dataclass(frozen=True, slots=True)
class Count:
    """The cases of one format, with or without the guard, in which a request was hit. `broken`: by what they break.

    `broken_cases`: those with any of it; of writes without a guard only those with rows that are wrong, since no stock
    commit promises the rest.
    """

    table_format: str
    guarded: bool
    cases: int
    broken_cases: int
    broken: dict[str, int]


def counts(records: Sequence[CaseRecord]) -> tuple[Count, ...]:
    """Count the cases that were hit, of each format, the guarded ones first."""
    groups: dict[tuple[str, bool], list[CaseRecord]] = {}
    for record in records:
        write = Case.parse(record.case).sequence
        if record.hit or (record.violations and (write.guarded or "harness_error" in record.violations)):
            groups.setdefault((write.table_format, write.guarded), []).append(record)
    found = []
    for (table_format, guarded), cases in sorted(groups.items(), key=lambda one: (one[0][0], not one[0][1])):
        broken = Counter(one for case in cases for one in case.violations)
        counted = set(VIOLATIONS) if guarded else _ROWS
        bad = sum(bool(counted & {*case.violations}) for case in cases)
        by_kind: dict[str, int] = {name: broken[name] for name in VIOLATIONS}
        found.append(Count(table_format, guarded, len(cases), bad, by_kind))
    return tuple(found)
