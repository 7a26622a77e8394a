"""A settler reads references, properties and a branch's history from an Iceberg table's metadata of any version."""

from __future__ import annotations

from typing import Any

import pytest

from safewriter.tables.iceberg.metadata import head_of, history_of, properties, references


@pytest.mark.parametrize(
    ("metadata", "head"),
    [
        ({"refs": {"main": {"snapshot-id": 7, "type": "branch"}}, "current-snapshot-id": 7}, 7),
        ({"refs": {}, "current-snapshot-id": -1}, None),
        ({"refs": {"x": {"snapshot-id": 7, "type": "branch"}}}, None),
        ({"current-snapshot-id": 7}, 7),
        ({"refs": None, "current-snapshot-id": 7}, 7),
        ({"current-snapshot-id": 0}, 0),
        ({"current-snapshot-id": -1}, None),
        ({"current-snapshot-id": None}, None),
        ({}, None),
    ],
)
def test_main_is_the_current_snapshot_where_there_are_no_references(metadata: dict[str, Any], head: int | None) -> None:
    """Tables of format version 1 were written without them; -1 and null both say that there is no snapshot."""
    assert head_of(metadata, "main") == head


def test_other_references_are_as_they_are_written() -> None:
    """A name that is not there has no head, whatever main is."""
    metadata = {"refs": {"x": {"snapshot-id": 5, "type": "tag"}}, "current-snapshot-id": 7}
    assert references(metadata) == {"x": {"snapshot-id": 5, "type": "tag"}}
    assert (head_of(metadata, "x"), head_of(metadata, "y")) == (5, None)
    assert head_of({"current-snapshot-id": 7}, "y") is None


def test_what_else_is_read() -> None:
    """The table's properties, which may be missing."""
    assert properties({"properties": {"a": "1"}}) == {"a": "1"}
    assert properties({}) == properties({"properties": None}) == {}


def test_a_branch_has_the_snapshots_before_its_head() -> None:
    """As far back as the table lists them, and no further if a parent names one that comes later."""
    snapshots = [
        {"snapshot-id": 1, "parent-snapshot-id": 3},
        {"snapshot-id": 2},
        {"snapshot-id": 3, "parent-snapshot-id": 1},
    ]
    refs = {"main": {"snapshot-id": 3}, "one": {"snapshot-id": 2}, "gone": {"snapshot-id": 9}}
    metadata = {"refs": refs, "snapshots": snapshots}
    assert history_of(metadata, "main") == {1, 3}
    assert history_of(metadata, "one") == {2}
    assert history_of(metadata, "gone") == set()
    assert history_of(metadata, "none") == set()
    assert history_of({"refs": refs}, "main") == set()
