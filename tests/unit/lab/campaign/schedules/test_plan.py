"""What a seed draws, and the names of what is left of it."""

from __future__ import annotations

import pytest

from tests.lab.campaign.schedules.plan import Plan


def test_a_name_is_its_schedule() -> None:
    """Also without some of the parts."""
    plan = Plan.of(7)
    for without in ((), (0,), (1, len(plan.parts) - 1)):
        left = plan.leaving_out(without)
        assert Plan.parse(left.name) == left
    assert Plan.parse("schedule-7") == plan


def test_a_part_that_is_left_out_leaves_the_others_as_they_are() -> None:
    """Members go as a whole; what is odd about one goes alone."""
    for seed in range(20):
        plan = Plan.of(seed)
        for number, part in enumerate(plan.parts):
            left = plan.leaving_out({number})
            others = [one for one in plan.members if one.name != part[0]]
            assert [one for one in left.members if one.name != part[0]] == others
            assert left != plan
            assert len(left.members) == len(plan.members) - (len(part) == 1)


@pytest.mark.parametrize("name", ["schedule-", "schedule-1-xyz", "schedule-1-" + "f" * 99, "delta-append-write"])
def test_another_name_is_no_schedule(name: str) -> None:
    """The error says how one looks."""
    with pytest.raises(ValueError, match="schedule-"):
        Plan.parse(name)


def test_seeds_draw_what_a_schedule_may_hold() -> None:
    """Two to four jobs, one to three batches, and each kind of member, clock and fault among some hundred of them."""
    plans = [Plan.of(seed) for seed in range(300)]
    jobs = [[one for one in plan.members if one.kind == "job"] for plan in plans]
    assert {len(some) for some in jobs} == {2, 3, 4}
    assert {len(plan.batches) for plan in plans} == {1, 2, 3}
    assert {one.kind for plan in plans for one in plan.members} == {"job", "sweeper", "reader", "neighbour", "eraser"}
    assert {one.script for some in jobs for one in some} == {"right", "raises", "raises late", "forgets"}
    assert any(one.handler for some in jobs for one in some)
    assert len({hit.fault for some in jobs for one in some for _, _, hit in one.faults}) == 12
