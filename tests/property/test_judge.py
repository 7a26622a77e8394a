"""The judge of random histories: it can reject a table."""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.property.judge import Log, check_metadata, rows_at
from tests.property.operations import Operation

BASE = Counter(range(4))
APPEND = Operation("append", range(100, 103))
MERGE = Operation("merge", range(100, 108, 4))


def log(*commits: list[dict[str, Any]]) -> Log:
    bodies = {
        f"_delta_log/{version:020}.json": SimpleNamespace(body="\n".join(json.dumps(one) for one in commit).encode())
        for version, commit in enumerate(commits)
    }
    return Log(cast("Any", SimpleNamespace(store=SimpleNamespace(get=bodies.get))))


def commit(operation: str, key: str | None = None, metadata: str = "", reverts: int | None = None) -> Any:
    mark = json.dumps({"safewriter": {"key": key, "epoch": 1, "reverts": reverts}})
    return [
        {"commitInfo": {"operation": operation, "userMetadata": mark}},
        *([{"txn": {"appId": key, "version": 1}}] if key and reverts is None else []),
        *([{"metaData": {"id": metadata}}] if metadata else []),
    ]


def test_what_was_taken_back_counts_for_nothing_that_came_after_it() -> None:
    """A MERGE after an undone append inserts rows that it would not have found; an inverse of the rows would not."""
    table = log(
        commit("WRITE", metadata="one"),
        commit("WRITE", "sw-1"),
        commit("MERGE"),
        commit("SAFEWRITER REVERT", reverts=1),
    )
    rows = rows_at(table, BASE, table.operations({"sw-1": APPEND}, {2: MERGE}))
    assert rows[2] == MERGE.effect(APPEND.effect(BASE))
    assert rows[3] == MERGE.effect(BASE) == BASE + Counter([100, 104])


def test_a_restore_brings_back_a_version_with_what_was_taken_back_later() -> None:
    """It shows the rows of that version, whatever the log holds after it; a fence has no effect."""
    table = log(
        commit("WRITE", metadata="one"),
        commit("WRITE", "sw-1"),
        commit("SAFEWRITER REVERT", reverts=1),
        commit("SAFEWRITER FENCE", "sw-1"),
        commit("RESTORE"),
    )
    then = rows_at(table, BASE, {1: APPEND})[1]
    rows = rows_at(table, BASE, table.operations({"sw-1": APPEND}, {4: Operation("restore", version=1, rows=then)}))
    assert rows[1:] == [APPEND.effect(BASE), BASE, BASE, APPEND.effect(BASE)]


def test_an_undo_that_leaves_the_schema_of_its_commit_is_found() -> None:
    """The metadata after the undo must equal that before the commit."""
    created, replaced = commit("WRITE", metadata="one"), commit("CREATE OR REPLACE TABLE AS SELECT", "sw-1", "two")
    check_metadata(log(created, replaced, commit("SAFEWRITER REVERT", metadata="one", reverts=1)))
    with pytest.raises(AssertionError):
        check_metadata(log(created, replaced, commit("SAFEWRITER REVERT", reverts=1)))
