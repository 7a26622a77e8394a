"""Schedules of the code as it is, and of broken guards."""

from __future__ import annotations

from typing import Final

import pytest

from tests.lab.campaign.schedules.plan import Batch, Member, Plan
from tests.lab.campaign.schedules.playing import play
from tests.lab.campaign.schedules.simulation import SECOND
from tests.lab.campaign.schedules.wire import Fault, Hit

pytestmark = pytest.mark.usefixtures("simulated")
SEEDS: Final = 200
MANY: Final = 2_500
_LONG: Final = Hit(Fault.FREEZE, 400 * SECOND)


def test_two_jobs_write_a_batch_once() -> None:
    """The second one finds it committed, and the reader between them sees it."""
    jobs = (Member("job0", "job", 0), Member("job1", "job", 30 * SECOND, again=True))
    plan = Plan(1, exists=True, batches=(Batch(),), members=(*jobs, Member("reader0", "reader", 20 * SECOND)))
    played = play(plan)
    assert played.broken == []
    assert [call.outcome for call in played.calls] == ["done", "there", "there"]
    assert [len(look.rows) for look in played.looks] == [1, 1, 1]
    assert played.versions == 2


def test_a_claim_that_stands_still_behind_its_look_at_the_table_skips_no_undone_write() -> None:
    """Between the commit and its undo it finds the write; when it goes on, the document is deleted."""
    first, eraser = Member("job0", "job", 0, script="raises late"), Member("eraser0", "eraser", 100 * SECOND)
    for start in range(0, SECOND, SECOND // 20):
        second = Member("job1", "job", start, faults=(("document", 0, _LONG),))
        assert play(Plan(1, exists=True, batches=(Batch(),), members=(first, second, eraser))).broken == []


def test_a_sweep_that_stands_still_behind_its_look_at_the_table_says_committed_of_no_undone_write() -> None:
    """It was to close a write that nobody had claimed, when a retry came."""
    dead = Member("job0", "job", 0, deadline=20 * SECOND, faults=(("document", 0, Hit(Fault.KILL)),))
    looks = ("list", 3, Hit(Fault.FREEZE, 7 * SECOND))
    sweeper = Member("sweeper0", "sweeper", 200 * SECOND, faults=(looks, ("document", 0, _LONG)))
    eraser = Member("eraser0", "eraser", 400 * SECOND)
    for start in range(204_500_000, 207 * SECOND, SECOND // 10):
        retry = Member("job1", "job", start, script="raises late")
        assert play(Plan(1, exists=True, batches=(Batch(),), members=(dead, sweeper, retry, eraser))).broken == []


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
