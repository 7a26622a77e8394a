"""Schedules find guards that are broken on purpose."""

from __future__ import annotations

from typing import Final

import pytest

from tests.lab.campaign.schedules.guards import BROKEN_GUARDS, broken
from tests.lab.campaign.schedules.plan import Plan
from tests.lab.campaign.schedules.playing import play
from tests.lab.campaign.schedules.shrinking import shrunk

pytestmark = [pytest.mark.usefixtures("simulated"), pytest.mark.slow]
SEEDS: Final = 10_000


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", BROKEN_GUARDS)
def test_a_broken_guard_is_found_among_the_first_seeds(name: str) -> None:
    """What is left of the schedule fails too, and does not with the guard."""
    with broken(name):
        found = next(plan for plan in map(Plan.of, range(SEEDS)) if play(plan).broken)
        smallest = shrunk(found, lambda plan: bool(play(plan).broken))
        assert play(Plan.parse(smallest.name)).broken
    assert len(smallest.without) > len(found.parts) // 3
    assert play(smallest).broken == []
