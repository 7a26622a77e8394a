"""Three streams on one Delta table, each with a Spark driver of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lab.turns.demo import EVENTS, demo
from tests.lab.turns.events import read_events

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.matrix  # coordination/ covers each promise in the short selection
@pytest.mark.timeout(900)
def test_three_streams_conflict_without_turns_and_keep_the_order_with_them(tmp_path: Path) -> None:
    """Conflicts without turns; with turns no conflict, no overlap, Ingestion before Mutation before TTL, and every row
    once, also those whose Mutation came before them.
    """
    outcome = demo(tmp_path, rounds=2)
    without, turns = outcome.verdicts["without"], outcome.verdicts["with"]
    assert without.conflicts > 0
    assert (turns.conflicts, turns.overlaps, turns.in_order) == (0, 0, True)
    assert turns.is_exact, turns
    assert turns.landed == turns.windows == 6
    assert turns.kept == turns.taken_up == 2
    assert outcome.is_as_it_must_be
    assert read_events(tmp_path / EVENTS) == list(outcome.events)
