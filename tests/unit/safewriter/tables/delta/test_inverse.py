from __future__ import annotations

import json
from typing import Any

import pytest

from safewriter.tables.delta.commit import Commit, Signature
from safewriter.tables.delta.inverse import Inverse, file_obstacle, needs_metadata, undo_obstacle
from safewriter.tables.delta.vectors import relative_key
from tests.unit.safewriter.delta_log import File, body_of, creation
from tests.unit.safewriter.world import World

VECTOR = {"storageType": "u", "pathOrInlineDv": "^-aqEH.-t@S}K{vb[*k^", "sizeInBytes": 4, "cardinality": 1}
VECTOR_KEY = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
REMOVED = {"path": "old%20one", "deletionTimestamp": 7, "extendedFileMetadata": True, "size": 5, "partitionValues": {}}


def commit(*actions: dict[str, Any], version: int = 2, **info: Any) -> Commit:
    about = {"timestamp": 3, "operation": "WRITE", **info}
    return Commit.parse(version, body_of([{"commitInfo": about}, *actions]))


def append(*names: str, version: int = 3, **info: Any) -> Commit:
    parameters = {"mode": "Append"}
    return commit(*(File(name).add() for name in names), version=version, operationParameters=parameters, **info)


def metadata(configuration: dict[str, str] | None = None, *names: str, **more: Any) -> dict[str, Any]:
    fields = [{"name": name, "type": "long", "nullable": True, "metadata": {}} for name in names]
    found = creation(configuration)[1]["metaData"]
    return {**found, "schemaString": json.dumps({"type": "struct", "fields": fields}), **more}


def obstacle(undo: Inverse, *others: Commit, there: bool = True) -> str | None:
    document = World().job().claim().held.document
    return undo_obstacle(document, undo, [*others, undo.ours]) or file_obstacle(undo.ours, lambda _: there)


def test_the_inverse_of_an_add_is_a_remove_and_of_a_remove_an_add() -> None:
    """Each with size, partition, statistics and row ids; what was removed becomes a file again as it was."""
    ours = commit(
        File("new", {"p": "1"}).add(baseRowId=4, tags=None),
        {"remove": {**REMOVED, "stats": "{}", "defaultRowCommitVersion": 1, "dataChange": True}},
    )
    assert Inverse(ours, None).actions(99) == [
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
    removal, returned = Inverse(ours, None).actions(1)
    assert removal["remove"]["deletionVector"] == VECTOR
    assert "deletionVector" not in returned["add"]


def test_a_schema_that_was_changed_is_put_back() -> None:
    """Before the files, and with column ids that were given out kept."""
    ids = "delta.columnMapping.maxColumnId"
    before = metadata({ids: "2", "a": "b"}, "id")
    ours = commit({"metaData": metadata({ids: "3", "a": "c"}, "id", "more")})
    (restored,) = Inverse(ours, before).actions(1)
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
    assert obstacle(Inverse(ours, None)) is None
    assert obstacle(Inverse(ours, None), there=False) == "files that version 2 removed are gone from S3 (VACUUM)"


def test_only_files_that_left_the_table_are_looked_for() -> None:
    """One that only got a deletion vector never left, and an append took none."""
    ours = commit(File("f").add(deletionVector=VECTOR), {"remove": {**REMOVED, "path": "f"}})
    assert obstacle(Inverse(ours, None), there=False) is None


def test_a_deletion_vector_that_a_file_had_is_looked_for() -> None:
    """VACUUM takes the vector that our commit has replaced, though the file itself stays."""
    had = {"remove": {**REMOVED, "path": "f", "deletionVector": VECTOR}}
    newer = {**VECTOR, "storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"}
    ours = commit(File("f").add(deletionVector=newer), had)
    assert ours.removed_keys == {VECTOR_KEY}
    assert "VACUUM" in str(obstacle(Inverse(ours, None), there=False))
    elsewhere = commit({"remove": {**REMOVED, "deletionVector": {**VECTOR, "storageType": "p"}}})
    assert "stored in an unknown way" in str(obstacle(Inverse(elsewhere, None)))


@pytest.mark.parametrize("lost", ["size", "extendedFileMetadata"])
def test_a_removal_that_does_not_say_what_it_held_cannot_be_undone(lost: str) -> None:
    """Writers of old wrote only the path."""
    short = {key: value for key, value in REMOVED.items() if key != lost}
    assert "without saying" in str(obstacle(Inverse(commit({"remove": short}), None)))


def test_what_others_wrote_with_our_schema_keeps_it() -> None:
    """Their rows would lose a column; without a change of ours they are in nobody's way."""
    ours = commit(File("new").add(), {"metaData": metadata({}, "id", "more")})
    theirs = append("theirs")
    assert "schema or properties of version 2" in str(obstacle(Inverse(ours, metadata({}, "id")), theirs))
    assert obstacle(Inverse(ours, None), theirs) is None


def test_who_adds_no_row_has_no_use_for_our_schema() -> None:
    """A DELETE of another file stands as well under the one of before."""
    ours = commit(File("new").add(), {"metaData": metadata({}, "id", "more")})
    assert obstacle(Inverse(ours, metadata({}, "id")), DELETE) is None


def test_files_that_do_not_say_that_they_were_moved_hold_new_rows() -> None:
    """`dataChange` is true where an engine has left it out."""
    add = File("new").add()["add"]
    add.pop("dataChange", None)
    assert obstacle(Inverse(commit({"add": add}), None)) is None
    assert "rewritten files" in str(obstacle(Inverse(commit({"add": {**add, "dataChange": False}}), None)))


@pytest.mark.parametrize("action", [{"add": File("old one").add()["add"]}, {"remove": {**REMOVED, "path": "new"}}])
def test_a_later_commit_that_touched_our_files_is_in_the_way(action: dict[str, Any]) -> None:
    """Those that we added, and those that we had removed."""
    ours = commit(File("new").add(), {"remove": REMOVED})
    assert obstacle(Inverse(ours, None), commit(action, version=3)) == "version 3 rewrote files of version 2 since"


OVERWRITE = commit({"remove": {**REMOVED, "path": "x"}}, File("y").add(), version=3, operation="WRITE")
DELETE = commit({"remove": {**REMOVED, "path": "x"}}, version=3, operation="DELETE")
UPDATE = commit({"remove": {**REMOVED, "path": "x"}}, File("y").add(), version=3, operation="UPDATE")
MERGE = commit(File("y").add(), version=3, operation="MERGE", isBlindAppend=False)
LOOKING = append("y", isBlindAppend=False)
COMPACTION = commit(
    {"remove": {**REMOVED, "path": "x", "dataChange": False}},
    File("y").add(dataChange=False),
    version=3,
    operation="OPTIMIZE",
)
INDIFFERENT = [
    append("y", isBlindAppend=True),
    append("y"),
    COMPACTION,
    commit(version=3, operation="SAFEWRITER FENCE"),
]


@pytest.mark.parametrize("later", [OVERWRITE, DELETE, UPDATE, MERGE, LOOKING], ids=lambda one: one.info["operation"])
def test_rows_do_not_come_back_beside_a_commit_that_did_without_them(later: Commit) -> None:
    """An overwrite has replaced them, a DELETE might have met them, a MERGE has inserted the keys that it missed."""
    for ours in (
        commit({"remove": REMOVED}),
        commit(File("f").add(deletionVector=VECTOR), {"remove": {**REMOVED, "path": "f"}}),
    ):
        why = "version 3 changed rows without seeing those that version 2 had removed"
        assert obstacle(Inverse(ours, None), later) == why


@pytest.mark.parametrize("later", INDIFFERENT, ids=lambda one: one.info["operation"])
def test_rows_come_back_beside_what_would_have_been_the_same_with_them(later: Commit) -> None:
    """Appends that look at no row, compactions, and fences."""
    assert obstacle(Inverse(commit(File("new").add(), {"remove": REMOVED}), None), later) is None


@pytest.mark.parametrize("later", [MERGE, LOOKING, OVERWRITE], ids=lambda one: one.info["operation"])
def test_our_rows_stay_where_another_commit_may_have_counted_on_them(later: Commit) -> None:
    """A MERGE does not insert a key that it has found in ours; an insert and an overwrite may be computed from them."""
    assert obstacle(Inverse(commit(File("new").add()), None), later) == "version 3 may depend on rows of version 2"


@pytest.mark.parametrize("later", [DELETE, UPDATE, *INDIFFERENT], ids=lambda one: one.info["operation"])
def test_our_rows_go_where_another_commit_decided_row_by_row(later: Commit) -> None:
    """With no file in common it has met none of ours."""
    assert obstacle(Inverse(commit(File("new").add()), None), later) is None


def test_what_the_table_has_become_before_our_commit_counts() -> None:
    """It was made append-only, or was given an unknown feature, between the claim and the commit."""
    ours = commit(File("new").add(), version=3)
    only = commit({"metaData": metadata({"delta.appendOnly": "true"}, "id")}, version=2)
    feature = commit({"protocol": {"readerFeatures": ["future"], "writerFeatures": ["future"]}}, version=2)
    assert obstacle(Inverse(ours, None), only) == "the table is append-only"
    assert "future" in str(obstacle(Inverse(ours, None), feature))


def test_a_change_of_the_clustering_stays() -> None:
    """Its domain would have to be put back, and what it was is not on record; of a creation it may stay."""
    domain = {"domainMetadata": {"domain": "delta.clustering", "configuration": "", "removed": False}}
    assert obstacle(Inverse(commit(domain), None)) == "version 2 changed delta.clustering"
    assert obstacle(Inverse(commit(domain, version=0), None)) is None


def test_column_ids_that_were_not_there_before_do_not_stay() -> None:
    """The commit that turned on column mapping is taken back whole."""
    before = metadata({"a": "b"}, "id")
    ours = commit({"metaData": metadata({"delta.columnMapping.maxColumnId": "3"}, "id")})
    assert Inverse(ours, before).actions(1) == [{"metaData": before}]


def test_rows_come_back_beside_another_write_s_revert() -> None:
    """The guard's own commits look at no row."""
    revert = commit(
        {"remove": {**REMOVED, "path": "x"}},
        version=3,
        operation="SAFEWRITER REVERT",
        userMetadata=Signature("k", 1, 1).to_text(),
    )
    assert obstacle(Inverse(commit(File("new").add(), {"remove": REMOVED}), None), revert) is None


def test_another_partitioning_is_another_schema() -> None:
    """It is put back, too."""
    ours = commit({"metaData": metadata({}, "id", partitionColumns=["id"])})
    assert needs_metadata(ours, metadata({}, "id"))


def test_the_highest_column_id_alone_is_no_reason() -> None:
    """It never goes back, since readers know columns by it."""
    ids = "delta.columnMapping.maxColumnId"
    assert not needs_metadata(commit({"metaData": metadata({ids: "3"}, "id")}), metadata({ids: "2"}, "id"))


def test_an_inline_vector_has_no_file() -> None:
    """There is nothing to look for."""
    assert relative_key({"storageType": "i", "pathOrInlineDv": "wi5b"}) is None
