"""The conclusions from a group's events and its table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.lab.turns.events import Group, TurnEvent, Window
from tests.lab.turns.workload import JOBS, Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.lab.turns.workload import Workload

__all__ = ["Verdict", "judge", "overlaps"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One group's figures. `lost`, `doubled` and `wrong` count rows that differ from the generator's.

    `in_order`: the landed windows follow each other as Ingestion, Mutation, TTL, round by round.
    """

    group: Group
    windows: int
    landed: int
    conflicts: int
    overlaps: int
    in_order: bool
    rows: int
    lost: int
    doubled: int
    wrong: int
    kept: int
    taken_up: int

    @property
    def is_exact(self) -> bool:
        """Whether the table holds the generator's rows."""
        return not (self.lost or self.doubled or self.wrong)


def judge(group: Group, workload: Workload, events: Sequence[Window | TurnEvent], rows: Iterable[Row]) -> Verdict:
    """Compare the windows with each other, and the rows with the expected ones."""
    windows = sorted((one for one in events if isinstance(one, Window)), key=lambda one: one.began_ms)
    turns = [one for one in events if isinstance(one, TurnEvent)]
    landed = [one for one in windows if one.outcome == "landed"]
    found = list(rows)
    times = Counter(row.id for row in found)
    expected = workload.expected
    return Verdict(
        group=group,
        windows=len(windows),
        landed=len(landed),
        conflicts=sum(one.outcome == "conflict" for one in windows),
        overlaps=len(overlaps(windows)) + len(overlaps(turns)),
        in_order=[one.job for one in landed] == [*JOBS] * workload.rounds,
        rows=len(found),
        lost=len(expected.keys() - times.keys()),
        doubled=sum(number - 1 for number in times.values())
        + sum(row.id in expected and row.mutations > expected[row.id].mutations for row in found),
        wrong=sum(expected.get(row.id) != row for row in found),
        kept=sum(one.kept for one in landed),
        taken_up=sum(one.taken_up for one in landed),
    )


def overlaps(events: Sequence[Window | TurnEvent]) -> list[tuple[Window | TurnEvent, Window | TurnEvent]]:
    """Return the pairs of different jobs' events that overlapped in time."""
    ordered = sorted(events, key=lambda one: one.began_ms)
    return [
        (one, other)
        for number, one in enumerate(ordered)
        for other in ordered[number + 1 :]
        if other.job != one.job and other.began_ms < one.ended_ms
    ]
