from __future__ import annotations

import re
from pathlib import Path

from safewriter.tables.delta.commit import Commit
from safewriter.tables.delta.inverse import UNDOABLE_FEATURES, Inverse
from tests.unit.safewriter.delta_log import body_of

PAGE = Path(__file__).parents[5] / "docs" / "concepts" / "delta.md"


def test_the_features_under_which_an_undo_is_right_are_those_of_the_page() -> None:
    """Each of them is tested alone with Spark; any other keeps the commit, with a reason."""
    section = PAGE.read_text(encoding="utf-8").split("## Table features")[1]
    named = section.split("SafeWriter does not undo")[0]

    assert set(re.findall(r"`(\w+)`", named)) == UNDOABLE_FEATURES


def test_a_commit_that_gave_out_no_column_ids_leaves_them_as_they_were() -> None:
    """What it replaced is put back whole; ids that ours has given out are kept beside it."""
    ids = "delta.columnMapping.maxColumnId"
    before = {"configuration": {ids: "3"}}

    def restored(configuration: dict[str, str]) -> object:
        ours = Commit.parse(2, body_of([{"metaData": {"configuration": configuration}}]))
        return Inverse(ours, before).actions(0)[0]["metaData"]

    assert restored({}) == before
    assert restored({ids: "5"}) == {"configuration": {ids: "5"}}
