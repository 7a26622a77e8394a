from __future__ import annotations

import json
from typing import Any

import pytest

from safewriter.tables.delta.commit import Commit
from safewriter.tables.delta.undo import Undo, file_obstacle, needs_metadata, undo_obstacle
from tests.unit.safewriter.delta_log import File, body_of, creation
from tests.unit.safewriter.world import World

VECTOR = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 4, "cardinality": 1}
REMOVED = {"path": "old%20one", "deletionTimestamp": 7, "extendedFileMetadata": True, "size": 5, "partitionValues": {}}


def commit(*actions: dict[str, Any], version: int = 2) -> Commit:
    return Commit.parse(version, body_of([{"commitInfo": {"timestamp": 3}}, *actions]))


def metadata(configuration: dict[str, str] | None = None, *names: str, **more: Any) -> dict[str, Any]:
    fields = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in names]
    found = creation(configuration)[1]["metaData"]
    return {**found, "schemaString": json.dumps({"type": "struct", "fields": fields}), **more}


def obstacle(undo: Undo, *later: Commit, there: bool = True) -> str | None:
    document = World().job().claim().held.document
    return undo_obstacle(document, undo, later) or file_obstacle(undo.ours, lambda _: there)


def test_the_inverse_of_an_add_is_a_remove_and_of_a_remove_an_add() -> None:
    """Each with size, partition, statistics and row ids; what was removed becomes a file again as it was."""
    ours = commit(
        File("new", {"p": "1"}).add(baseRowId=4, tags=None),
        {"remove": {**REMOVED, "stats": "{}", "defaultRowCommitVersion": 1, "dataChange": True}},
    )
    assert Undo(ours, None).actions(99) == [
        {
            "remove": {
                "path": "new",
                "deletionTimestamp": 99,
                "dataChange": True,
                "extendedFileMetadata": True,
                "partitionValues": {"p": "1"},
                "size": 100,
                "stats": json.dumps({"numRecords": 10}),
                "baseRowId": 4,
            }
        },
        {
            "add": {
                "path": "old%20one",
                "partitionValues": {},
                "modificationTime": 7,
                "dataChange": True,
                "size": 5,
                "stats": "{}",
                "defaultRowCommitVersion": 1,
            }
        },
    ]


def test_a_deletion_vector_is_exchanged_for_the_one_before() -> None:
    """The file stays, and its rows are those that it had."""
    ours = commit(File("f").add(deletionVector=VECTOR), {"remove": {**REMOVED, "path": "f"}})
    removal, returned = Undo(ours, None).actions(1)
    assert removal["remove"]["deletionVector"] == VECTOR
    assert "deletionVector" not in returned["add"]


def test_a_schema_that_was_changed_is_put_back() -> None:
    """Before the files, and with column ids that were given out kept."""
    ids = "delta.columnMapping.maxColumnId"
    before = metadata({ids: "2", "a": "b"}, "id")
    ours = commit({"metaData": metadata({ids: "3", "a": "c"}, "id", "more")})
    (restored,) = Undo(ours, before).actions(1)
    assert restored == {"metaData": {**before, "configuration": {ids: "3", "a": "b"}}}


def test_a_high_water_mark_is_no_change_of_the_schema() -> None:
    """An identity column's mark moves with every write, and may stay where it is."""
    column = {"name": "i", "type": "long", "nullable": True}

    def marked(mark: int) -> dict[str, Any]:
        with_mark = {**column, "metadata": {"delta.identity.highWaterMark": mark, "delta.identity.step": 1}}
        return metadata(schemaString=json.dumps({"type": "struct", "fields": [with_mark]}))

    assert not needs_metadata(commit({"metaData": marked(9)}), marked(1))
    assert needs_metadata(commit({"metaData": metadata({}, "id", "more")}), metadata({}, "id"))
    assert needs_metadata(commit({"metaData": metadata({"x": "y"}, "id")}), metadata({}, "id"))
    assert needs_metadata(commit({"metaData": metadata({}, "id", id="other")}), metadata({}, "id"))
    assert not needs_metadata(commit(File("f").add()), metadata({}, "id"))


def test_files_that_are_gone_cannot_come_back() -> None:
    """VACUUM has taken what our commit had removed; undoing it would break the table."""
    ours = commit(File("new").add(), {"remove": REMOVED})
    assert obstacle(Undo(ours, None)) is None
    assert obstacle(Undo(ours, None), there=False) == "files that version 2 removed are gone from S3 (VACUUM)"


def test_only_files_that_left_the_table_are_looked_for() -> None:
    """One that only got a deletion vector never left, and an append took none."""
    ours = commit(File("f").add(deletionVector=VECTOR), {"remove": {**REMOVED, "path": "f"}})
    assert obstacle(Undo(ours, None), there=False) is None


@pytest.mark.parametrize("lost", ["size", "extendedFileMetadata"])
def test_a_removal_that_does_not_say_what_it_held_cannot_be_undone(lost: str) -> None:
    """Writers of old wrote only the path."""
    short = {key: value for key, value in REMOVED.items() if key != lost}
    assert "without saying" in str(obstacle(Undo(commit({"remove": short}), None)))


def test_what_others_wrote_with_our_schema_keeps_it() -> None:
    """Their rows would lose a column; without a change of ours they are in nobody's way."""
    ours = commit(File("new").add(), {"metaData": metadata({}, "id", "more")})
    theirs = commit(File("theirs").add(), version=3)
    assert "that version 2 brought" in str(obstacle(Undo(ours, metadata({}, "id")), theirs))
    assert obstacle(Undo(ours, None), theirs) is None


@pytest.mark.parametrize("action", [{"add": File("old one").add()["add"]}, {"remove": {**REMOVED, "path": "new"}}])
def test_a_later_commit_that_touched_our_files_is_in_the_way(action: dict[str, Any]) -> None:
    """Those that we added, and those that we had removed."""
    ours = commit(File("new").add(), {"remove": REMOVED})
    assert obstacle(Undo(ours, None), commit(action, version=3)) == "version 3 rewrote files of version 2 since"


def test_a_change_of_the_clustering_stays() -> None:
    """Its domain would have to be put back, and what it was is not on record; of a creation it may stay."""
    domain = {"domainMetadata": {"domain": "delta.clustering", "configuration": "", "removed": False}}
    assert obstacle(Undo(commit(domain), None)) == "version 2 changed delta.clustering"
    assert obstacle(Undo(commit(domain, version=0), None)) is None
