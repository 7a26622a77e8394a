"""The gate in Java and its model give the same answers, requests and bytes for generated histories of blocks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, given, settings

from tests.model.gate_comparison import difference
from tests.model.gate_histories import HISTORIES, histories
from tests.model.passing import CODES

if TYPE_CHECKING:
    from tests.logstore.jvm import LogStore
    from tests.model.gate_world import World

pytestmark = pytest.mark.slow

OFTEN: Final = 5
WANTED: Final = {
    *(f"refused: {code}" for code in CODES),
    *("done", "taken", "failed", "broken", "busy", "none", "in flight", "landed", "unknown"),
    *("of no block: done", "of no block: taken", "a stray", "two blocks told", "over by its file"),
    *("over by its execution", "fenced by its slot", "fenced by the note", "fenced behind the claim"),
    *("gap behind the claim", "a second try", "landed when it was shut", "the journal is gone"),
    *("a winner that is gone", "refused again for another reason", "a refusal in a journal"),
    *("a mark taken out, a block's", "a mark taken out, no block's"),
}
"""The events that the histories must contain, each at least `OFTEN` times, for the comparison to cover them."""


def test_the_gate_decides_as_its_model_does(logstore: LogStore) -> None:
    """For equal histories of blocks and commits: equal answers, requests, bytes, journals, and gate records.

    The search of the protocol uses the same decisions (`passing.py`).
    """
    ends: Counter[str] = Counter()

    @settings(max_examples=HISTORIES, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(histories())
    def compare(world: World) -> None:
        assert difference(logstore, world) == ""
        ends.update(world.ends)

    compare()

    assert {end: ends[end] for end in WANTED if ends[end] < OFTEN} == {}
