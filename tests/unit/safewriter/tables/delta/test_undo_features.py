from __future__ import annotations

import re
from pathlib import Path

from safewriter.tables.delta.commit import Commit
from safewriter.tables.delta.undo import UNDOABLE_FEATURES, Undo
from tests.unit.safewriter.delta_log import body_of

PROTOCOL = Path(__file__).parents[5] / "docs" / "concepts" / "protocol.md"


def test_the_features_under_which_an_undo_is_right_are_those_of_the_protocol() -> None:
    """Each of them is tested alone with Spark; any other keeps the commit, with a reason."""
    rows = PROTOCOL.read_text().split("| table feature | undo |")[1].split("\n\n")[0].splitlines()
    yes = [row.split("|")[1] for row in rows if row.count("|") >= 3 and row.split("|")[2].strip() == "yes"]

    assert {name for row in yes for name in re.findall(r"`(\w+)`", row)} - {"delta"} == UNDOABLE_FEATURES


def test_a_commit_that_gave_out_no_column_ids_leaves_them_as_they_were() -> None:
    """What it replaced is put back whole; ids that ours has given out are kept beside it."""
    ids = "delta.columnMapping.maxColumnId"
    before = {"configuration": {ids: "3"}}

    def restored(configuration: dict[str, str]) -> object:
        ours = Commit.parse(2, body_of([{"metaData": {"configuration": configuration}}]))
        return Undo(ours, before).actions(0)[0]["metaData"]

    assert restored({}) == before
    assert restored({ids: "5"}) == {"configuration": {ids: "5"}}
