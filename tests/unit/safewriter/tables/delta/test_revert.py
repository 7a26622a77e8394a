from __future__ import annotations

from typing import Any

import pytest

from safewriter.objects import StoreError
from safewriter.record.checkpoints import Checkpoints
from safewriter.tables.delta.commit import Mark
from safewriter.tables.delta.fence import fence
from safewriter.tables.delta.history import DeltaHistory
from safewriter.tables.delta.inverse import UNDOABLE_FEATURES
from safewriter.tables.delta.revert import find_live, revert
from tests.unit.safewriter.delta_log import File, append_actions, body_of, creation
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.world import Job, World


def landed(**more: Any) -> tuple[World, Job]:
    world = World(**more)
    return world, world.job().begin("{}a.parquet", "day=x%20y/{}b.parquet").land()


def undo(world: World, job: Job) -> str | None:
    log = DeltaHistory(world.lake, world.clock)
    ours = find_live(log.since(job.document.attempt), world.key, job.document.epoch)
    assert ours is not None
    return revert(log, job.document, log.since(job.document.attempt), ours, world.checkpoints, world.clock)


def live(world: World, job: Job, epoch: int = 1) -> int | None:
    found = find_live(DeltaHistory(world.lake, world.clock).since(job.document.attempt), world.key, epoch)
    return None if found is None else found.version


# -- looking for our commit --------------------------------------------------------------------------------------------


def test_our_commit_is_found_by_its_transaction() -> None:
    """Foreign commits around it do not matter."""
    world, job = landed()
    world.append_foreign()

    assert live(world, job) == 2


def test_a_commit_of_a_later_epoch_is_not_seen() -> None:
    """A settler that slept must not find the commit of a later attempt."""
    world, job = landed()
    world.log.append(File("later"), txn=(world.key, 3))

    assert live(world, job, epoch=1) == 2
    assert live(world, job, epoch=0) is None


def test_a_commit_of_an_earlier_epoch_is_ours_too() -> None:
    """The document's epoch is an upper bound."""
    world, job = landed()

    assert live(world, job, epoch=9) == 2


def test_a_fence_is_not_our_commit() -> None:
    """It bears the same transaction action, and nothing of the write."""
    world = World()
    job = world.job().begin()
    fence(DeltaHistory(world.lake, world.clock), job.document, world.checkpoints, world.clock)

    assert live(world, job) is None


def test_another_application_is_not_our_commit() -> None:
    """The write key decides, not the number."""
    world = World()
    job = world.job().begin()
    world.log.append(File("x"), txn=("another", 1))

    assert live(world, job) is None


def test_an_undone_commit_is_not_live() -> None:
    """Only our own revert counts as one: a mark of another write does not."""
    world, job = landed()
    world.append_foreign()

    assert undo(world, job) is None
    assert live(world, job) is None


# -- undoing it --------------------------------------------------------------------------------------------------------


def test_a_revert_removes_exactly_our_files() -> None:
    """Every other writer's files stay, those committed after ours too."""
    world, job = landed()
    world.append_foreign()

    assert undo(world, job) is None

    assert world.log.live() == sorted(file.key for file in world.foreign)
    removed = world.log.actions("remove", 4)
    assert [action["path"] for action in removed] == [file.path for file in job.files]


def test_a_removal_repeats_what_the_add_said() -> None:
    """Partition values, size, tags, statistics and row ids are kept; what the add had not is not made up."""
    world = World()
    job = world.job().begin()
    file = File("day=x%20y/a.parquet", {"day": "x y", "hour": None})
    tagged = file.add(tags={"k": "v"}, baseRowId=0, defaultRowCommitVersion=2)
    actions = append_actions((File("b.parquet"),), txn=(world.key, 1))
    world.log.commit([*actions, tagged])

    assert undo(world, job) is None

    plain, full = world.log.actions("remove", 3)
    assert full == {
        "path": "day=x%20y/a.parquet",
        "deletionTimestamp": world.now_ms,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {"day": "x y", "hour": None},
        "size": 100,
        "tags": {"k": "v"},
        "stats": '{"numRecords": 10}',
        "baseRowId": 0,
        "defaultRowCommitVersion": 2,
    }
    assert plain.keys().isdisjoint({"tags", "baseRowId", "defaultRowCommitVersion"})


def test_a_revert_bears_no_transaction() -> None:
    """The fence is our commit itself; the retry's transaction must not meet another one."""
    world, job = landed()

    assert undo(world, job) is None

    assert world.log.actions("txn", 3) == []
    assert world.log.actions("commitInfo", 3)[0]["operation"] == "SAFEWRITER REVERT"


def test_a_revert_is_not_done_twice() -> None:
    """Whoever comes with the same commit in hand finds that it is undone already."""
    world, job = landed()
    log = DeltaHistory(world.lake, world.clock)
    ours = log.read(2)

    assert revert(log, job.document, log.since(job.document.attempt), ours, world.checkpoints, world.clock) is None
    assert revert(log, job.document, log.since(job.document.attempt), ours, world.checkpoints, world.clock) is None
    assert world.log.head == 3


def test_a_slot_that_was_lost_is_followed_by_a_new_look() -> None:
    """A foreign commit takes the slot of the revert; the revert lands behind it."""
    world, job = landed()
    log = DeltaHistory(world.lake, world.clock)
    append, foreign = log.append, iter([True, True])

    def contended(version: int, actions: list[dict[str, Any]]) -> bool:
        if next(foreign, None):
            world.append_foreign()
        return append(version, actions)

    log.append = contended  # type: ignore[method-assign]

    assert (
        revert(log, job.document, log.since(job.document.attempt), log.read(2), world.checkpoints, world.clock) is None
    )
    assert world.log.live() == sorted(file.key for file in world.foreign)
    assert len(world.foreign) == 3


def test_a_revert_that_finds_no_free_slot_gives_up() -> None:
    """The loop ends although somebody else is always faster."""
    world, job = landed()
    log = DeltaHistory(world.lake, world.clock)
    log.append = lambda version, actions: False  # type: ignore[method-assign]

    with pytest.raises(StoreError, match="no free slot for a revert"):
        revert(log, job.document, log.since(job.document.attempt), log.read(2), world.checkpoints, world.clock)


def test_a_revert_of_a_table_with_in_commit_timestamps_is_dated() -> None:
    """Later than everything before it, ours included."""
    world = World(properties={"delta.enableInCommitTimestamps": "true"}, features=("inCommitTimestamp",))
    job = world.job().begin()
    ahead = world.now_ms + 70_000
    world.log.append(*job.files, txn=(world.key, 1), inCommitTimestamp=ahead)

    assert undo(world, job) is None

    assert world.log.actions("commitInfo", 3)[0]["inCommitTimestamp"] == ahead + 1


# -- what cannot be undone ---------------------------------------------------------------------------------------------


def obstacle(world: World, job: Job, *, slots: int = 0) -> str:
    """Inverse, which has to be refused; the log gets so many empty commits by that."""
    head = world.log.head
    found = undo(world, job)
    assert found is not None
    assert world.log.head == head + slots
    assert not world.log.actions("remove", world.log.head) or not slots
    return found


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


# -- schema and properties ---------------------------------------------------------------------------------------------

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


# -- what the log does not show ----------------------------------------------------------------------------------------


def overwritten(world: World) -> Job:
    """Land a commit of ours that replaces the foreign file."""
    job = world.job().begin()
    removed = {"path": world.foreign[0].path, "extendedFileMetadata": True, "size": 100, "deletionTimestamp": 1}
    world.log.commit([*append_actions(job.files, txn=(world.key, 1)), {"remove": removed}])
    return job


def test_a_revert_that_is_on_its_way_does_not_land_after_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """One settler still saw the files that our commit had replaced, the next one does not: one of them has the slot."""
    world = World()
    job = overwritten(world)
    sent: list[tuple[int, list[dict[str, Any]]]] = []

    def stays_in_the_air(_log: DeltaHistory, version: int, actions: list[dict[str, Any]]) -> bool:
        sent.append((version, actions))
        raise StoreError("no answer")

    with monkeypatch.context() as patched, pytest.raises(StoreError):
        patched.setattr(DeltaHistory, "append", stays_in_the_air)
        undo(world, job)
    world.hide(world.foreign[0].key)  # VACUUM

    assert "gone from S3" in obstacle(world, job, slots=1)
    ((version, actions),) = sent
    assert any("add" in action for action in actions)
    assert not world.log.put(version, body_of(actions))


def test_a_refusal_that_loses_its_slot_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The revert that was on its way has landed first: then the commit is undone, whoever asks."""
    world = World()
    job = overwritten(world)
    append = DeltaHistory.append
    before = len(world.log.versions)

    def overtaken(log: DeltaHistory, version: int, actions: list[dict[str, Any]]) -> bool:
        monkeypatch.setattr(DeltaHistory, "append", append)
        world.lake.put(world.foreign[0].key, b"parquet")
        assert undo(world, job) is None
        return append(log, version, actions)

    world.hide(world.foreign[0].key)
    monkeypatch.setattr(DeltaHistory, "append", overtaken)
    assert undo(world, job) is None
    assert len(world.log.versions) == before + 1


def test_another_write_s_revert_undoes_nothing_of_ours() -> None:
    """Its mark names a version, too, but a version of its own write."""
    world, job = landed()
    info = {"operation": "SAFEWRITER REVERT", "userMetadata": Mark("sw-other", 1, reverts=2).to_text()}
    world.log.commit([{"commitInfo": info}])

    assert live(world, job) == 2
