from __future__ import annotations

import re
from pathlib import Path

from safewriter.tables.delta.undo import UNDOABLE_FEATURES

PROTOCOL = Path(__file__).parents[5] / "safewriter" / "PROTOCOL.md"


def test_the_features_under_which_an_undo_is_right_are_those_of_the_protocol() -> None:
    """Each of them is tested alone with Spark; any other keeps the commit, with a reason."""
    rows = PROTOCOL.read_text().split("| table feature | undo |")[1].split("\n\n")[0].splitlines()
    yes = [row.split("|")[1] for row in rows if row.count("|") >= 3 and row.split("|")[2].strip() == "yes"]

    assert {name for row in yes for name in re.findall(r"`(\w+)`", row)} - {"delta"} == UNDOABLE_FEATURES
