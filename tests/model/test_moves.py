"""The protocol's model on Delta makes exactly the moves of status that the code's document allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.record.document import LEGAL_MOVES, OPEN, Status
from tests.model.engine import explore
from tests.model.model import Model
from tests.model.scenarios import SCENARIOS, both_commit_points

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.setting import Setting
    from tests.model.state import Doc, State

pytestmark = pytest.mark.slow

NAMES = [
    "stands still beyond its grace",
    "new table",
    "lost versions",
    "two attempts",
    "killed, settled from outside",
    "a document that is deleted while it is open",
]


class Recorded(Model):
    """A model that records the document's changes of status."""

    seen: set[tuple[Status | None, Status]]

    def moves(self, state: State) -> Iterator[tuple[str, State]]:
        for what, after in super().moves(state):
            if after.doc is not None and after.doc != state.doc:
                self.seen.add((_status(state.doc), after.doc.status))
            yield what, after


def _status(doc: Doc | None) -> Status | None:
    return None if doc is None else doc.status


@pytest.fixture(scope="module")
def seen() -> set[tuple[Status | None, Status]]:
    found: set[tuple[Status | None, Status]] = set()
    for _, setting in both_commit_points({name: SCENARIOS[name] for name in NAMES}):
        explore(_recorded(setting, found), states_max=100_000)
    return found


def _recorded(setting: Setting, found: set[tuple[Status | None, Status]]) -> Recorded:
    model = Recorded(setting)
    object.__setattr__(model, "seen", found)
    return model


def test_the_model_makes_exactly_the_moves_of_the_code(seen: set[tuple[Status | None, Status]]) -> None:
    """A change of the code's table of moves needs the same change of the model."""
    assert {move for move in seen if move[0] is not None} == LEGAL_MOVES


def test_a_document_begins_claimed_or_with_the_verdict_of_the_table(seen: set[tuple[Status | None, Status]]) -> None:
    """Its first status is that of a claim, or of a write that the table holds."""
    begun = {Status.IN_PROGRESS, Status.COMMITTED}
    assert {after for before, after in seen if before is None} == begun


def test_the_open_states_are_those_that_settle_can_leave(seen: set[tuple[Status | None, Status]]) -> None:
    """A terminal state ends only by the claim of a rolled-back write; clean-up does not change the status."""
    left = {before for before, after in seen if before is not None and before is not after}
    claimed = {before for before, after in seen if before is not None and after is Status.IN_PROGRESS}

    assert left == OPEN | claimed
    assert claimed == {Status.ROLLED_BACK}
