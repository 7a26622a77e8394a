"""Schedules of the code as it is, and of broken guards."""

from __future__ import annotations

from typing import Final

import pytest

from tests.lab.campaign.schedules.plan import Batch, Member, Plan
from tests.lab.campaign.schedules.playing import play
from tests.lab.campaign.schedules.simulation import SECOND

pytestmark = pytest.mark.usefixtures("simulated")
SEEDS: Final = 200
MANY: Final = 2_500


def test_two_jobs_write_a_batch_once() -> None:
    """The second one finds it committed, and the reader between them sees it."""
    jobs = (Member("job0", "job", 0), Member("job1", "job", 30 * SECOND, again=True))
    plan = Plan(1, exists=True, batches=(Batch(),), members=(*jobs, Member("reader0", "reader", 20 * SECOND)))
    played = play(plan)
    assert played.broken == []
    assert [call.outcome for call in played.calls] == ["done", "there", "there"]
    assert [len(look.rows) for look in played.looks] == [1, 1, 1]
    assert played.versions == 2


def test_schedules_keep_each_promise() -> None:
    """Those of the first seeds; `scripts/lab faults run FOLDER --tier schedules` plays as many as one likes."""
    played = [play(Plan.of(seed)) for seed in range(SEEDS)]
    assert [(one.plan.name, one.broken) for one in played if one.broken] == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(0, 10_000, MANY))
def test_ten_thousand_schedules_keep_each_promise(first: int) -> None:
    """In two minutes of a core; `scripts/lab faults replay` shows what happens in one that is named here."""
    broken = [played.plan.name for played in map(play, map(Plan.of, range(first, first + MANY))) if played.broken]
    assert broken == []


def test_a_schedule_is_the_same_each_time() -> None:
    """Its seed decides about everything."""
    for seed in range(5):
        first, second = play(Plan.of(seed)), play(Plan.of(seed))
        assert (first.calls, first.looks, first.requests) == (second.calls, second.looks, second.requests)
