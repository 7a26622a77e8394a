from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from hypothesis import HealthCheck, given, settings

from tests.model.gate_histories import histories
from tests.model.passing import CODES

if TYPE_CHECKING:
    from tests.logstore.jvm import LogStore
    from tests.model.gate_world import World

HISTORIES: Final = 2_000
_TIMES: Final = re.compile(r'("lastUpdated"|"atMs"):\d+')
OFTEN: Final = 5


WANTED: Final = {
    *(f"refused: {code}" for code in CODES),
    *("done", "taken", "failed", "busy", "none", "landed", "unknown"),
    *("of no block: done", "of no block: taken", "a stray", "two blocks told", "over by its file"),
    *("over by its execution", "fenced by its slot", "fenced by the note", "fenced behind the claim"),
    *("gap behind the claim", "a second try", "landed when it was shut", "the journal is gone"),
    "refused again for another reason",
}
"""What has to come about, each a few times, for the comparison to be about it."""


def test_the_gate_decides_as_its_model_does(logstore: LogStore) -> None:
    """The same histories of blocks and commits: equal answers, requests, bytes, journals, and knowledge afterwards.

    The decisions of the model are those by which the protocol is searched (`passing.py`).
    """
    ends: Counter[str] = Counter()

    @settings(max_examples=HISTORIES, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(histories())
    def compare(world: World) -> None:
        answer = logstore.ask("history", steps=world.steps)
        assert "error" not in answer, answer
        for number, (step, expected, seen) in enumerate(zip([*world.steps, {}], world.seen, answer, strict=True)):
            assert as_told(seen) == expected, f"step {number}: {step}"
        ends.update(world.ends)

    compare()

    assert {end: ends[end] for end in WANTED if ends[end] < OFTEN} == {}


def as_told(seen: dict[str, Any]) -> dict[str, Any]:
    """Return what the driver says without what no two runs have in common: times, and the words of a refusal."""
    for block in seen.get("blocks", {}).values():
        block["refusal"] = block["refusal"].partition(": ")[0]
    for call in seen.get("calls", ()):
        call[2:3] = [_TIMES.sub(r"\1:0", text) for text in call[2:3]]
    for kind in ("bodies", "journals"):
        seen.update(
            {kind: {name: _TIMES.sub(r"\1:0", text) for name, text in seen[kind].items()}} if kind in seen else {}
        )
    return seen
