"""A commit that has changed schema or properties, which its undo puts back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.record.checkpoints import Checkpoints
from safewriter.tables.delta.history import DeltaHistory
from safewriter.tables.delta.revert import revert
from tests.unit.safewriter.delta_log import append_actions, body_of, creation
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.tables.delta.undoing import landed, obstacle, undo
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from tests.unit.safewriter.job import Job

BEFORE = creation({"x": "before"})[1]
AFTER = creation({"x": "after"})[1]


def evolved(world: World) -> Job:
    """Land a commit of ours that changes the table's properties."""
    job = world.job().begin()
    world.log.commit([*append_actions(job.files, txn=(world.key, 1)), AFTER])
    return job


def test_properties_are_put_back_from_the_gates_note() -> None:
    """The log since the claim does not show what they were."""
    world = World()
    job = evolved(world)
    world.bucket.create(world.checkpoints.note_key(world.key, 1), body_of([BEFORE, {"note": {"nonce": "n"}}]))

    assert undo(world, job) is None
    assert world.log.actions("metaData")[-1] == BEFORE["metaData"]


def test_properties_are_put_back_from_the_log_where_it_shows_them() -> None:
    """Somebody changed them between our claim and our commit, or created the table then."""
    world = World()
    job = world.job().begin()
    world.log.commit([{"commitInfo": {"timestamp": 5, "operation": "SET TBLPROPERTIES"}}, BEFORE])
    world.log.commit([*append_actions(job.files, txn=(world.key, 1)), AFTER])

    assert undo(world, job) is None
    assert world.log.actions("metaData")[-1] == BEFORE["metaData"]


def test_the_log_tells_what_the_last_change_before_ours_was() -> None:
    """Between it and our commit others may have changed rows only."""
    world = World()
    job = world.job().begin()
    world.log.commit([{"commitInfo": {"timestamp": 5, "operation": "SET TBLPROPERTIES"}}, BEFORE])
    world.append_foreign()
    world.log.commit([*append_actions(job.files, txn=(world.key, 1)), AFTER])

    assert undo(world, job) is None
    assert world.log.actions("metaData")[-1] == BEFORE["metaData"]


def test_the_note_begins_with_the_tables_protocol() -> None:
    """As the gate writes it: one action a line, and the metadata is not the first."""
    world = World()
    job = evolved(world)
    note = body_of([*creation({"x": "before"}), {"note": {"nonce": "n"}}])
    world.bucket.create(world.checkpoints.note_key(world.key, 1), note)

    assert undo(world, job) is None
    assert world.log.actions("metaData")[-1] == BEFORE["metaData"]


def test_the_first_version_of_a_table_is_no_change_of_it_and_the_second_may_be() -> None:
    """A table that was created by version 0 has properties that our version 1 may have replaced."""
    world = World(existing=False)
    world.log.create({"x": "before"}, ())
    job = evolved(world)
    assert job.document.attempt.version_before == 0

    assert "not on record" in obstacle(world, job, slots=1)


def test_metadata_that_our_commit_has_only_repeated_is_not_put_back() -> None:
    """An overwrite may repeat it; a change since would otherwise be taken back with it."""
    world = World()
    job = world.job().begin()
    world.log.commit([{"commitInfo": {"timestamp": 5, "operation": "SET TBLPROPERTIES"}}, BEFORE])
    world.log.commit([*append_actions(job.files, txn=(world.key, 1)), BEFORE])
    before = len(world.log.actions("metaData"))

    assert undo(world, job) is None
    assert len(world.log.actions("metaData")) == before


def test_an_undo_that_changes_no_metadata_asks_for_no_note() -> None:
    """Most writes change none, and the note would be one request more."""
    world, job = landed()
    network = Network()
    checkpoints = Checkpoints(network.store(world.bucket))
    log = DeltaHistory(world.lake, world.clock)
    commits = log.since(job.document.attempt)

    assert revert(log, job.document, commits, commits[-1], checkpoints, world.clock) is None
    assert network.sent == []


def test_properties_that_nobody_remembers_stay() -> None:
    """A commit that cannot be undone as a whole is not undone at all."""
    world = World()
    assert "not on record" in obstacle(world, evolved(world), slots=1)


def test_a_tombstone_remembers_nothing() -> None:
    """A settler that came first has closed the note's place."""
    world = World()
    job = evolved(world)
    world.checkpoints.close_creation(world.key, 1)

    assert "not on record" in obstacle(world, job, slots=1)
