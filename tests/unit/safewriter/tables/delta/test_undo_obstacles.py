"""Commits that cannot be undone, and why."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from safewriter.record.document import Status
from safewriter.settle.recovery import Cause, Evidence
from safewriter.tables.delta.commit import Signature
from safewriter.tables.delta.history import DeltaHistory
from safewriter.tables.delta.undo import UNDOABLE_FEATURES, table_obstacle, undo_obstacle
from tests.unit.safewriter.delta_log import File, append_actions, creation
from tests.unit.safewriter.tables.delta.undoing import landed, obstacle, undo
from tests.unit.safewriter.world import World

PAGE = Path(__file__).parents[5] / "docs" / "concepts" / "delta.md"


@pytest.mark.parametrize(
    "path", ["{}a.parquet", "day=x%20y/{}b.parquet", "day=x y/{}b.parquet", "day%3Dx%20y/{}b.parquet"]
)
def test_files_that_were_rewritten_since_stay(path: str) -> None:
    """Their rows are now in other files, however the other engine encodes a path."""
    world, job = landed()
    removed = path.format(job.document.attempt.prefix)
    world.log.commit([{"commitInfo": {"operation": "OPTIMIZE"}}, {"remove": {"path": removed}}, File("opt").add()])

    assert "rewrote files" in obstacle(world, job)


def test_rows_that_were_deleted_since_stay_deleted() -> None:
    """A deletion vector adds our file again; a removal of the old entry would bring nothing back."""
    world, job = landed()
    vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
    world.log.commit([{"commitInfo": {"operation": "DELETE"}}, job.files[0].add(deletionVector=vector)])

    assert "rewrote files" in obstacle(world, job)


def test_a_change_of_the_table_since_is_in_the_way() -> None:
    """Schema or properties may give the removal another meaning."""
    for action in creation():
        world, job = landed()
        world.log.commit([{"commitInfo": {"operation": "SET TBLPROPERTIES"}}, action])

        assert "changed the table's schema or properties" in obstacle(world, job)


def test_a_change_of_the_table_before_our_commit_is_not_in_the_way() -> None:
    """Only what came after ours matters."""
    world = World()
    job = world.job().begin()
    world.log.commit([{"commitInfo": {"operation": "SET TBLPROPERTIES"}}, *creation()])
    job.land()

    assert undo(world, job) is None


def test_an_append_only_table_keeps_everything() -> None:
    """The property forbids every removal."""
    world, job = landed(properties={"delta.appendOnly": "true"}, features=("appendOnly",))

    assert "append-only" in obstacle(world, job)


@pytest.mark.parametrize("told", [True, False])
def test_a_table_keeps_everything_whatever_a_document_says_of_it(*, told: bool) -> None:
    """The log tells of the table: a false document may ask for an undo, and leave its properties out."""
    world = World(properties={"delta.appendOnly": "true"})
    world.job().begin().land()
    if told:
        world.log.tell()
    history, document = DeltaHistory(world.lake, world.clock), world.false_document()
    commits = history.since(document.attempt)

    assert "append-only" in str(undo_obstacle(history, document, commits[-1], commits))


def test_a_table_that_we_created_append_only_keeps_everything() -> None:
    """Our own commit's metadata is newer than the claim's."""
    world, job = landed(existing=False, properties={"delta.appendOnly": "true"}, features=("appendOnly",))

    assert "append-only" in obstacle(world, job)


@pytest.mark.parametrize("existing", [True, False])
@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"delta.compatibility.symlinkFormatManifest.enabled": "true"}, "symlinkFormatManifest"),
        ({"delta.universalFormat.enabledFormats": "hudi"}, "a table of 'hudi'"),
    ],
)
def test_a_table_that_has_a_second_description_keeps_everything(
    existing: bool,  # noqa: FBT001
    properties: dict[str, str],
    words: str,
) -> None:
    """Only Spark writes the manifests or the other format, so their readers would still find rows that are undone."""
    world, job = landed(existing=existing, properties=properties)

    assert words in obstacle(world, job)


@pytest.mark.parametrize(
    ("properties", "is_obstacle"),
    [
        ({"delta.appendOnly": "TRUE"}, True),
        ({"delta.appendOnly": "false"}, False),
        ({"delta.compatibility.symlinkFormatManifest.enabled": "True"}, True),
        ({"delta.compatibility.symlinkFormatManifest.enabled": "false"}, False),
        ({"delta.universalFormat.enabledFormats": ""}, False),
        ({}, False),
    ],
)
def test_a_property_counts_as_delta_reads_it(properties: dict[str, str], is_obstacle: object) -> None:
    """Its value in any case, and not the feature that it belongs to."""
    assert (table_obstacle(("appendOnly",), properties) is not None) is is_obstacle


def test_an_unknown_feature_is_named() -> None:
    """An undo under an untested feature is refused."""
    for existing in (True, False):
        world, job = landed(existing=existing, features=("appendOnly", "newThing"))

        assert "the table uses newThing" in obstacle(world, job)


def test_under_known_features_an_undo_is_possible() -> None:
    """All features on the list at once."""
    world, job = landed(features=tuple(sorted(UNDOABLE_FEATURES)))

    assert undo(world, job) is None


def test_the_features_under_which_an_undo_is_right_are_those_of_the_page() -> None:
    """Each of them is tested alone with Spark; any other keeps the commit, with a reason."""
    section = PAGE.read_text(encoding="utf-8").split("## Table features")[1]
    named = section.split("SafeWriter does not undo")[0]

    assert set(re.findall(r"`(\w+)`", named)) == UNDOABLE_FEATURES


DOMAIN = {"domainMetadata": {"domain": "delta.clustering", "configuration": "", "removed": False}}


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ({"remove": {"path": "foreign-0.parquet"}}, "removed files"),
        (DOMAIN, "changed the table's schema or properties"),
        (creation()[0], "changed the table's schema or properties"),
        (creation()[1], "changed the table's schema or properties"),
        ({"txn": {"appId": "the script's", "version": 7}}, "holds the script's own transaction the script's"),
        ({"add": {**File("x").add()["add"], "dataChange": False}}, "holds files that are not new rows"),
        ({"add": {"path": "x", "partitionValues": {}, "dataChange": True}}, "holds files that are not new rows"),
        ({"add": {"path": "x", "size": 1, "dataChange": True}}, "holds files that are not new rows"),
    ],
)
def test_a_commit_that_has_done_more_than_add_files_stays(action: dict[str, Any], why: str) -> None:
    """The log lacks what it removed, or others have used what it added."""
    world = World()
    job = world.job().begin()
    world.log.commit([*append_actions(job.files, txn=(world.key, 1)), action])

    assert obstacle(world, job) == f"version 2 {why}"


def test_the_creation_of_a_table_may_say_what_the_table_is() -> None:
    """Its rows are removed, and an empty table remains; a transaction of the script's own would remain, too."""
    for action, stays in ((DOMAIN, False), ({"txn": {"appId": "mine", "version": 7}}, True)):
        world = World(existing=False)
        job = world.job().begin()
        world.log.commit([*append_actions(job.files, txn=(world.key, 1)), *creation(), action])

        if stays:
            assert obstacle(world, job) == "version 0 holds the script's own transaction mine"
        else:
            assert undo(world, job) is None
            assert world.log.live() == []


def test_files_that_do_not_say_that_they_were_moved_hold_new_rows() -> None:
    """`dataChange` is true if an engine has left it out."""
    world = World()
    job = world.job().begin()
    add = dict(File("x").add()["add"])
    del add["dataChange"]
    world.log.commit([*append_actions(job.files, txn=(world.key, 1)), {"add": add}])

    assert undo(world, job) is None


def test_a_commit_of_an_attempt_that_the_document_does_not_name_stays() -> None:
    """The first attempt has succeeded, and its document was deleted while a second one was about to claim."""
    world = World()
    second = world.job()
    before = second.state()
    first = world.job().begin().land()
    assert first.success()
    world.bucket.delete(f"checkpoints/{world.key}.json")
    second.claimer.announce()
    second.held = second.claimer.claim(before).checkpoint
    assert second.document.epoch == first.document.epoch

    document = world.settle(Cause.EXCEPTION, Evidence(1, nothing_sent=True))

    assert document.status is Status.COMMITTED
    assert document.undo_refused == "version 2 is of an attempt that this document does not name"
    assert world.log.live() == sorted([*(file.key for file in first.files), "foreign-0.parquet"])


def later(operation: str, *actions: dict[str, Any], **info: Any) -> list[dict[str, Any]]:
    return [{"commitInfo": {"timestamp": 3, "operation": operation, **info}}, *actions]


REMOVED = {"remove": {"path": "x", "size": 5, "partitionValues": {}}}
MOVED = {"remove": {**REMOVED["remove"], "dataChange": False}}
APPEND = {"operationParameters": {"mode": "Append"}}
DEPENDENT = [
    later("WRITE", REMOVED, File("y").add()),
    later("WRITE", File("y").add(), isBlindAppend=False, **APPEND),
    later("MERGE", File("y").add(), isBlindAppend=False),
    later("UPDATE", REMOVED, File("y").add()),
    later("MERGE", isBlindAppend=False),
    later("UPDATE", isBlindAppend=False),
    later("WRITE", isBlindAppend=False, **APPEND),
    later("an operation of another engine"),
    later("DELETE", REMOVED, operationParameters={"predicate": '["(id < scalarsubquery())"]'}),
    later("DELETE", REMOVED, operationParameters={"predicate": "id IN (SELECT max(id) FROM t)"}),
]
DEPENDENT_NAMES = [
    "overwrite",
    "insert that looks",
    "merge",
    "update",
    "merge of nothing",
    "update of nothing",
    "insert of nothing",
    "unknown operation",
    "delete with a subquery of Spark's",
    "delete with a subquery in SQL",
]
INDIFFERENT = [
    later("WRITE", File("y").add(), isBlindAppend=True, **APPEND),
    later("WRITE", File("y").add(), **APPEND),
    later("OPTIMIZE", MOVED, File("y").add(dataChange=False)),
    later("SAFEWRITER FENCE", userMetadata=Signature("k", 1).to_text()),
    later("SAFEWRITER REVERT", REMOVED, userMetadata=Signature("k", 1, 1).to_text()),
    later("DELETE", REMOVED, operationParameters={"predicate": '["(selected = true)"]'}),
    later("DELETE"),
    later("OPTIMIZE"),
    later("VACUUM END"),
    later("WRITE", isBlindAppend=True, **APPEND),
]


@pytest.mark.parametrize("commit", DEPENDENT, ids=DEPENDENT_NAMES)
def test_our_rows_stay_where_another_commit_may_have_counted_on_them(commit: list[dict[str, Any]]) -> None:
    """A MERGE does not insert a key that it found in ours, and may so have nothing to insert; the others may be
    computed from them.
    """
    world, job = landed()
    world.log.commit(commit)

    assert obstacle(world, job) == "version 3 may depend on rows of version 2"


@pytest.mark.parametrize("commit", INDIFFERENT, ids=lambda one: one[0]["commitInfo"]["operation"])
def test_our_rows_go_where_another_commit_would_have_been_the_same_without_them(commit: list[dict[str, Any]]) -> None:
    """Appends that read no row, compactions, the guard's own commits, and a DELETE, which decides row by row."""
    world, job = landed()
    world.log.commit(commit)

    assert undo(world, job) is None


def test_the_row_ids_of_our_commit_are_not_in_the_way() -> None:
    """Row tracking moves its high-water mark with every append; a mark that is too high is harmless."""
    world = World()
    job = world.job().begin()
    domain = {"domainMetadata": {"domain": "delta.rowTracking", "configuration": "{}", "removed": False}}
    world.log.commit([*append_actions(job.files, txn=(world.key, 1)), domain])

    assert undo(world, job) is None
