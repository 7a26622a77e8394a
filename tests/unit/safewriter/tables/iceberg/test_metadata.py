from __future__ import annotations

from typing import Any

import pytest

from safewriter.tables.iceberg.metadata import head_of, properties, references


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
