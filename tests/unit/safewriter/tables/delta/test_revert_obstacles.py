"""Commits that cannot be undone, and why."""

from __future__ import annotations

from typing import Any

import pytest

from safewriter.tables.delta.inverse import UNDOABLE_FEATURES
from tests.unit.safewriter.delta_log import File, append_actions, creation
from tests.unit.safewriter.tables.delta.undoing import landed, obstacle, undo
from tests.unit.safewriter.world import World


@pytest.mark.parametrize(
    "path", ["{}a.parquet", "day=x%20y/{}b.parquet", "day=x y/{}b.parquet", "day%3Dx%20y/{}b.parquet"]
)
def test_files_that_were_rewritten_since_stay(path: str) -> None:
    """Their rows live on in other files, whatever way the other engine encodes a path."""
    world, job = landed()
    removed = path.format(job.document.attempt.prefix)
    world.log.commit([{"commitInfo": {"operation": "OPTIMIZE"}}, {"remove": {"path": removed}}, File("opt").add()])

    assert "rewrote files" in obstacle(world, job)


def test_rows_that_were_deleted_since_stay_deleted() -> None:
    """A deletion vector adds our file again; removing the old entry would bring back nothing but confusion."""
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


def test_a_table_that_we_created_append_only_keeps_everything() -> None:
    """What our own commit says of the table is newer than what the claim saw."""
    world, job = landed(existing=False, properties={"delta.appendOnly": "true"}, features=("appendOnly",))

    assert "append-only" in obstacle(world, job)


def test_an_unknown_feature_is_named() -> None:
    """A feature that nobody has tried an undo under is no place for one."""
    for existing in (True, False):
        world, job = landed(existing=existing, features=("appendOnly", "newThing"))

        assert "the table uses newThing" in obstacle(world, job)


def test_under_known_features_an_undo_is_possible() -> None:
    """All features on the list at once."""
    world, job = landed(features=tuple(sorted(UNDOABLE_FEATURES)))

    assert undo(world, job) is None


@pytest.mark.parametrize(
    "action",
    [
        {"remove": {"path": "foreign-0.parquet"}},
        {"domainMetadata": {"domain": "delta.clustering", "configuration": "", "removed": False}},
        {"add": {"path": "x", "dataChange": False}},
        {"metaData": {"id": "x", "schemaString": "{}", "configuration": {}}},
    ],
)
def test_a_commit_of_ours_that_does_not_say_what_it_replaced_stays(action: dict[str, Any]) -> None:
    """What it took could not be brought back as it was."""
    world = World()
    job = world.job().begin()
    world.log.commit([*append_actions(job.files, txn=(world.key, 1)), action])

    assert "version 2" in obstacle(world, job, slots=int("metaData" in action))


def test_the_row_ids_of_our_commit_are_not_in_the_way() -> None:
    """Row tracking moves its high-water mark with every append; a mark that is too high harms nobody."""
    world = World()
    job = world.job().begin()
    domain = {"domainMetadata": {"domain": "delta.rowTracking", "configuration": "{}", "removed": False}}
    world.log.commit([*append_actions(job.files, txn=(world.key, 1)), domain])

    assert undo(world, job) is None
