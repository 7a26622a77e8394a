from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.state import LEGAL_MOVES, Status
from tests.model.engine import explore
from tests.model.iceberg.model import IcebergModel
from tests.model.iceberg.scenarios import SCENARIOS
from tests.model.iceberg.setting import IcebergSetting
from tests.model.scenarios import both_commit_points

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.model.state import State

NAMES = [
    "iceberg, anything, a creation",
    "iceberg, the table is dropped, and registered again",
    "iceberg, retention",
]
CLAIMED_AGAIN = {"a retry": IcebergSetting(second=True, failed_before=True)}


class Recorded(IcebergModel):
    """Remembers how the document has changed."""

    seen: set[tuple[Status, Status]]

    def moves(self, state: State) -> Iterator[tuple[str, State]]:
        for what, after in super().moves(state):
            if state.doc is not None and after.doc is not None and after.doc != state.doc:
                self.seen.add((state.doc.status, after.doc.status))
            yield what, after


@pytest.fixture(scope="module")
def seen() -> set[tuple[Status, Status]]:
    found: set[tuple[Status, Status]] = set()
    for _, setting in both_commit_points({**CLAIMED_AGAIN, **{name: SCENARIOS[name] for name in NAMES}}):
        model = Recorded(setting)
        object.__setattr__(model, "seen", found)
        explore(model, states_max=100_000)
    return found


def test_the_model_makes_the_moves_of_the_code(seen: set[tuple[Status, Status]]) -> None:
    """All but those of a table that is lost while what went into main by itself is taken back (a creation's table is
    not missed), and the new claim after an attempt that had nothing to change, which is the same for every format.
    """
    rolling = {(Status.ROLLING_BACK, Status.UNKNOWN), (Status.UNKNOWN, Status.ROLLING_BACK)}

    assert seen == LEGAL_MOVES - rolling - {(Status.COMMITTED, Status.IN_PROGRESS)}
