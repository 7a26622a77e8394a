"""Seeds are played in blocks that can be resumed; a schedule that fails is shrunk, and replayed by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.lab.campaign.record import SCHEDULES, ScheduleBlock
from tests.lab.campaign.schedules import running
from tests.lab.campaign.schedules.guards import broken
from tests.lab.campaign.schedules.plan import Plan
from tests.lab.campaign.schedules.playing import Played
from tests.lab.campaign.schedules.shrinking import shrunk
from tests.lab.campaign.schedules.witness import Broken
from tests.lab.results import append, read

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_blocks_hold_each_seed_once() -> None:
    """The last one holds what is left."""
    assert running.blocks(7, 1100) == [(7, 500), (507, 500), (1007, 100)]


def test_a_failing_schedule_keeps_what_it_fails_with_only() -> None:
    """Every part that is left is needed."""
    plan = Plan.of(3)
    needed = {plan.parts[0], plan.parts[-1], plan.parts[-1][:1]}

    def fails(one: Plan) -> bool:
        return needed <= {part for number, part in enumerate(one.parts) if number not in one.without}

    smallest = shrunk(plan, fails)
    members = {(one.name,) for one in smallest.members}
    left = {part for number, part in enumerate(plan.parts) if number not in smallest.without and part[:1] in members}
    assert left == needed


def test_a_block_that_is_done_is_not_played_again(tmp_path: Path) -> None:
    """What is left is."""
    line = ScheduleBlock(first=0, seeds=2, requests=0, outcomes={}, broken=[], seconds=1.0)
    append(tmp_path / SCHEDULES, line)
    assert running.run(tmp_path, [(0, 2), (2, 1)], jobs=1, until=None, s3="", progress=lambda: None)
    lines = read(tmp_path / SCHEDULES, ScheduleBlock)
    assert [(one.first, one.seeds, one.broken) for one in lines] == [(0, 2, []), (2, 1, [])]
    assert lines[1].requests > 10
    assert not running.run(tmp_path, [(3, 1)], jobs=1, until=0, s3="", progress=lambda: None)


def test_a_failing_seed_is_shrunk_in_its_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line has what is left of it, and how it shows."""

    def play(plan: Plan, **_: object) -> Played:
        return Played(plan, [Broken("lost", "it")] if plan.seed == 1 and plan.members else [], [], [], 5, 1, [])

    monkeypatch.setattr(running, "play", play)
    assert running._played(tmp_path, 0, 3, None)
    (line,) = read(tmp_path / SCHEDULES, ScheduleBlock)
    (found,) = line.broken
    assert (line.requests, found.whole, found.violations, found.what) == (15, "schedule-1", ["lost"], ["it"])
    assert found.schedule.startswith("schedule-1-")
    assert len(found.members) == 1


def test_a_schedule_is_replayed_by_its_name() -> None:
    """With each request, and what was broken if a guard is."""
    with broken("no fence before rolled_back"):
        record = running.replay("schedule-22")
    assert record.violations
    assert any("last reader/main: GetObject t/_delta_log/" in line for line in record.trace)
    assert running.replay("schedule-22").violations == []
