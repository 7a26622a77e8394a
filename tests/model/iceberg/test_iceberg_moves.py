"""The model on Iceberg makes the status moves that the code's document allows, except those of an undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.record.document import LEGAL_MOVES, Status
from tests.model.engine import explore
from tests.model.iceberg.model import IcebergModel
from tests.model.iceberg.scenarios import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.state import State

NAMES = [
    "iceberg, anything, an append",
    "iceberg, the table is dropped, and registered again",
    "iceberg, two attempts, one retry",
]


class Recorded(IcebergModel):
    """A model that records the document's changes of status."""

    seen: set[tuple[Status, Status]]

    def moves(self, state: State) -> Iterator[tuple[str, State]]:
        for what, after in super().moves(state):
            if state.doc is not None and after.doc is not None and after.doc != state.doc:
                self.seen.add((state.doc.status, after.doc.status))
            yield what, after


def test_the_model_makes_the_moves_of_the_code() -> None:
    """All but those of an undo, since an unpublished write needs none, and none after a commit."""
    found: set[tuple[Status, Status]] = set()
    for name in NAMES:
        model = Recorded(SCENARIOS[name])
        object.__setattr__(model, "seen", found)
        explore(model, states_max=100_000)

    assert found == {
        move
        for move in LEGAL_MOVES
        if Status.ROLLING_BACK not in move and move != (Status.COMMITTED, Status.IN_PROGRESS)
    }
