"""What the callers and the readers saw must have an order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.lab.campaign.schedules.jobs import Call, Look, Outcome
from tests.lab.campaign.schedules.judging import _history
from tests.lab.campaign.schedules.linearizable import is_linearizable
from tests.lab.campaign.schedules.witness import Rows


def call(outcome: Outcome, called: int, answered: int | None, nonce: str = "1", *, undoable: bool = False) -> Call:
    return Call(0, "key", called, nonce, undoable, outcome, answered)


def look(called: int, *nonces: str) -> Look:
    return Look(called, called + 1, frozenset(Rows("key", 1, nonce) for nonce in nonces), 0)


def holds(calls: list[Call], looks: list[Look]) -> bool:
    stage: Any = SimpleNamespace(calls=calls, looks=looks)
    return is_linearizable(_history(stage), (("", False),))


@pytest.mark.parametrize(
    ("calls", "looks", "explained"),
    [
        ([call("done", 1, 2)], [look(3, "1")], True),
        ([call("done", 1, 2)], [look(3)], False),
        ([call("done", 1, 6)], [look(2, "1"), look(4)], False),
        ([call("failed", 1, 8)], [look(2, "1"), look(4), look(9)], True),
        ([call("failed", 1, 2)], [look(3, "1")], False),
        ([call("unknown", 1, None)], [look(2), look(4, "1")], True),
        ([call("unknown", 1, None)], [look(2, "1"), look(4)], False),
        ([call("unknown", 1, None, undoable=True)], [look(2, "1"), look(4)], True),
        ([call("unknown", 1, None, undoable=True), call("there", 4, 5, "2")], [look(2, "1"), look(6)], False),
        ([call("there", 1, 2)], [look(3)], False),
        ([call("done", 1, 2), call("done", 3, 4, "2")], [], False),
        ([call("done", 1, 2)], [look(3, "1", "2")], False),
    ],
    ids=[
        "acknowledged and there",
        "acknowledged and not there",
        "seen and gone before the answer",
        "undone before the answer",
        "rolled back and there",
        "no answer, and it lands",
        "no answer, and it goes again",
        "no answer, and a settler undoes it",
        "undone behind a skip",
        "skipped without anybody's rows",
        "acknowledged twice",
        "rows of an attempt that nobody has called",
    ],
)
def test_a_history_of_calls_is_explained_by_an_order_or_is_not(
    calls: list[Call], looks: list[Look], explained: object
) -> None:
    """Each batch is there once, and stays when a caller was told so."""
    assert holds(calls, looks) is explained
