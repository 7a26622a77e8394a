"""The lab judges its three streams by overlaps, order, conflicts and rows, with turns and without."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from safewriter.coordination import End
from tests.lab.turns.demo import Outcome
from tests.lab.turns.events import TurnEvent, Window
from tests.lab.turns.verdict import judge, overlaps
from tests.lab.turns.workload import JOBS, workload

if TYPE_CHECKING:
    from tests.lab.turns.workload import Job

WORK = workload(1, 2)


def window(job: Job, began_ms: int, ended_ms: int, **more: Any) -> Window:
    return Window(group="with", job=job, began_ms=began_ms, ended_ms=ended_ms, batch=0, **{"outcome": "landed", **more})


def turn(job: Job, began_ms: int, ended_ms: int) -> TurnEvent:
    return TurnEvent(group="with", job=job, began_ms=began_ms, ended_ms=ended_ms, token=1, end=End.COMPLETED)


def in_turns() -> list[Window]:
    return [window(job, 10 * number, 10 * number + 5) for number, job in enumerate(JOBS * WORK.rounds)]


def test_windows_overlap_that_share_a_time_and_are_of_different_jobs() -> None:
    """Neither touching windows count, nor those of one job."""
    assert overlaps([window("Ingestion", 0, 10), window("Mutation", 10, 20), window("Mutation", 15, 30)]) == []
    one, other = window("Ingestion", 0, 10), window("TTL", 9, 20)
    assert overlaps([other, one]) == [(one, other)]


def test_overlapping_turns_count_too() -> None:
    """A turn lasts longer than its window."""
    events: list[Window | TurnEvent] = [*in_turns(), turn("Ingestion", 0, 12), turn("Mutation", 11, 20)]
    assert judge("with", WORK, events, WORK.expected.values()).overlaps == 1


def test_the_order_is_that_of_the_landed_windows() -> None:
    """Windows that lost a conflict do not count; two jobs that have changed places do."""
    events = in_turns()
    lost = window("TTL", 1, 2, outcome="conflict")
    assert judge("with", WORK, [*events, lost], ()).in_order
    swapped = [events[1].model_copy(update={"began_ms": -1}), *events[2:], events[0]]
    assert not judge("with", WORK, swapped, ()).in_order


def test_rows_are_counted_as_lost_doubled_and_wrong() -> None:
    """One row is missing, one is there twice, one was changed twice, one should have been deleted."""
    first, second, third, *others = WORK.expected.values()
    stays = replace(first, id="was to be deleted")
    found = [second, second, replace(third, mutations=third.mutations + 1), stays, *others]
    verdict = judge("with", WORK, in_turns(), found)
    assert (verdict.lost, verdict.doubled, verdict.wrong) == (1, 2, 2)
    assert not verdict.is_exact
    assert judge("with", WORK, in_turns(), WORK.expected.values()).is_exact


@pytest.mark.parametrize(
    ("group", "change"),
    [
        ("without", {"conflicts": 0}),
        ("with", {"conflicts": 1}),
        ("with", {"overlaps": 1}),
        ("with", {"in_order": False}),
        ("with", {"lost": 1}),
        ("with", {"taken_up": 1}),
        ("with", {"kept": 0, "taken_up": 0}),
    ],
)
def test_each_figure_that_is_not_as_it_must_be_fails_the_demonstration(group: Any, change: dict[str, Any]) -> None:
    """No conflict without turns shows nothing; with them every figure must be right."""
    events = [*in_turns(), window("Mutation", 100, 101, kept=2, taken_up=2)]
    right = replace(judge("with", WORK, events, WORK.expected.values()), in_order=True)
    verdicts: dict[Any, Any] = {"without": replace(right, group="without", conflicts=1), "with": right}
    assert Outcome((), verdicts).is_as_it_must_be
    assert not Outcome((), {**verdicts, group: replace(verdicts[group], **change)}).is_as_it_must_be
