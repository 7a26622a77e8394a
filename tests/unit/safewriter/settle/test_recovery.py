"""The verdict on an attempt that has landed, and on one that has not."""

from __future__ import annotations

import pytest

from safewriter.record.document import CommitPoint, Status
from safewriter.settle.recovery import Cause, Evidence
from tests.unit.safewriter.delta_log import File, creation
from tests.unit.safewriter.invariants import check
from tests.unit.safewriter.settle.traces import operations, statuses
from tests.unit.safewriter.world import World

OUTSIDE = [Cause.DEADLINE, Cause.KILLED, Cause.RETRY]

# -- nothing of ours in the table --------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", Cause)
@pytest.mark.parametrize("commit_point", CommitPoint)
def test_what_has_not_landed_is_fenced_and_rolled_back(cause: Cause, commit_point: CommitPoint) -> None:
    """The fence carries the dead epoch, so that the retry's own transaction is above it."""
    world = World(commit_point)
    world.job().begin()

    document = world.settle(cause)

    assert (document.status, document.epoch) == (Status.ROLLED_BACK, 1)
    assert operations(world) == ["CREATE TABLE", "WRITE", "SAFEWRITER FENCE"]
    assert world.log.transaction(world.key) == 1
    assert document.reason == f"{cause.value}: no commit of this write is in the table"
    assert document.attempt.settled_by == cause.value
    check(world)


@pytest.mark.parametrize(
    ("lands", "evidence", "incomplete"),
    [
        (True, Evidence(lost="rows are missing"), "rows are missing"),
        (True, Evidence(strays="rows are beside it"), "rows are beside it"),
        (True, Evidence(), None),
        (False, Evidence(lost="rows are missing"), None),
        (False, Evidence(strays="rows are beside it", lost="rows are missing"), "rows are beside it"),
    ],
)
def test_a_verdict_says_which_rows_it_does_not_cover(
    *, lands: bool, evidence: Evidence, incomplete: str | None
) -> None:
    """Rows that are missing matter to a committed write only, rows beside the block to either."""
    world = World()
    job = world.job().begin()
    if lands:
        job.land()

    assert world.settle(Cause.KILLED, evidence).incomplete == incomplete


@pytest.mark.parametrize("given", [{"spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog"}, None])
def test_a_settler_knows_the_catalogs_that_it_was_given(given: dict[str, str] | None) -> None:
    """And no others."""
    assert World().recovery(spark_settings=given).settling.spark_settings == (given or {})


def test_a_fenced_commit_that_is_still_on_its_way_never_lands() -> None:
    """Its slot is taken, and the gate does not let it rebase behind a fence."""
    world = World()
    job = world.job().begin()
    job.prepare()
    world.settle()

    assert not job.rebase()
    check(world)


def test_a_new_commit_of_the_dead_epoch_is_refused() -> None:
    """A sandbox that thaws takes a fresh snapshot after the fence; the gate still finds the fence."""
    world = World()
    job = world.job().begin()
    world.settle()

    assert not job.commit()
    check(world)


def test_the_retry_is_not_shut_out_by_the_fence() -> None:
    """One healthy retry brings the batch in."""
    world = World()
    world.job().begin()
    world.settle()

    assert world.job().run()

    assert (world.document.status, world.document.epoch) == (Status.COMMITTED, 2)
    check(world)


def test_where_nothing_was_sent_no_fence_is_needed() -> None:
    """The table shows nothing of a block that failed before its commit."""
    world = World()
    world.job().begin()

    document = world.settle(Cause.EXCEPTION, Evidence(1, nothing_sent=True, requests_ended=True))

    assert document.status is Status.ROLLED_BACK
    assert operations(world) == ["CREATE TABLE", "WRITE"]
    check(world)


def test_foreign_commits_do_not_confuse_the_look_up() -> None:
    """Others append before, between and behind."""
    world = World()
    world.job().begin()
    for _ in range(3):
        world.append_foreign()
    world.log.append(File("streaming"), txn=("another-application", 99))

    assert world.settle().status is Status.ROLLED_BACK
    check(world)


# -- landed ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", OUTSIDE)
def test_with_commit_point_write_the_tables_commit_decides(cause: Cause) -> None:
    """A deadline or a kill does not mean that the block failed, so a landed commit counts."""
    world = World(CommitPoint.WRITE)
    job = world.job().begin().land()
    world.append_foreign()

    document = world.settle(cause)

    assert document.status is Status.COMMITTED
    assert (document.attempt.commit_version, document.attempt.rows, document.attempt.bytes) == (2, 20, 200)
    assert {file.key for file in job.files} <= set(world.log.live())
    assert world.log.head == 3
    check(world)


@pytest.mark.parametrize(
    ("commit_point", "cause"),
    [*((CommitPoint.SUCCESS, cause) for cause in Cause), (CommitPoint.WRITE, Cause.EXCEPTION)],
)
def test_without_success_what_has_landed_is_undone(commit_point: CommitPoint, cause: Cause) -> None:
    """Exactly our files are removed; commits of others since then stay."""
    world = World(commit_point)
    world.job().begin().land()
    world.append_foreign()

    document = world.settle(cause)

    assert document.status is Status.ROLLED_BACK
    assert document.reason == f"{cause.value}: version 2 was undone"
    assert world.log.live() == sorted(file.key for file in world.foreign)
    assert statuses(world)[:3] == ["in_progress", "rolling_back", "rolled_back"]
    check(world)


def test_the_retry_after_an_undo_lands_once() -> None:
    """Neither the undone commit nor its revert shuts it out."""
    world = World(CommitPoint.SUCCESS)
    world.job().begin().land()
    world.settle()

    assert world.job().run()

    assert world.document.status is Status.COMMITTED
    check(world)


def test_a_commit_that_created_the_table_leaves_an_empty_one() -> None:
    """A creation cannot be undone, and the verdict says so."""
    world = World(CommitPoint.SUCCESS, existing=False)
    world.job().begin().land()

    document = world.settle()

    assert document.reason == "killed: version 0 was undone, an empty table remains"
    assert world.log.live() == []
    check(world)


@pytest.mark.parametrize("cause", [Cause.EXCEPTION, Cause.KILLED])
def test_an_undo_that_is_refused_ends_committed_and_says_why(cause: Cause) -> None:
    """The rows are there, so only committed is true; no undo is announced that will not happen."""
    world = World(CommitPoint.SUCCESS)
    job = world.job().begin().land()
    # Another writer has read our rows and written them elsewhere: they are in the table, in a file of its own.
    vector = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 1, "cardinality": 1}
    first = job.files[0]
    world.log.commit(
        [
            {"commitInfo": {"operation": "DELETE"}},
            {"remove": {"path": first.path, "dataChange": True}},
            first.add(deletionVector=vector),
        ]
    )

    document = world.settle(cause)

    assert document.status is Status.COMMITTED
    assert document.undo_refused == "version 3 rewrote files of version 2 since"
    assert document.attempt.commit_version == 2
    assert statuses(world)[:2] == ["in_progress", "committed"]
    assert f"audit/{world.key}-1-undo_refused.jsonl" in world.bucket.contents()
    check(world)


@pytest.mark.parametrize(
    ("properties", "features", "word"),
    [({"delta.appendOnly": "true"}, ("appendOnly",), "append-only"), ({}, ("newThing",), "newThing")],
)
def test_a_table_that_allows_no_undo_keeps_the_commit(
    properties: dict[str, str], features: tuple[str, ...], word: str
) -> None:
    """Facts that are known since the claim lead to the same end, and a second settling changes nothing."""
    world = World(properties=properties, features=features)
    world.job().begin().land()

    document = world.settle(Cause.EXCEPTION)

    assert document.status is Status.COMMITTED
    assert word in (document.undo_refused or "")
    assert world.settle(Cause.EXCEPTION) == document
    check(world)


def test_a_change_of_the_schema_since_keeps_the_commit() -> None:
    """The removal might have another meaning now."""
    world = World()
    world.job().begin().land()
    world.log.commit([{"commitInfo": {"operation": "ADD COLUMNS"}}, creation()[1]])

    document = world.settle(Cause.EXCEPTION)

    assert (document.status, document.undo_refused) == (
        Status.COMMITTED,
        "version 3 changed the table's schema or properties since",
    )
    check(world)


def test_partitions_and_encoded_paths_survive_an_undo() -> None:
    """A removal names its file exactly as the add did."""
    world = World()
    job = (
        world.job()
        .begin("day=a%20b/{}1.parquet", "day=%C3%BC/{}2.parquet", "day=__HIVE_DEFAULT_PARTITION__/{}3")
        .land()
    )

    document = world.settle(Cause.EXCEPTION)

    assert document.status is Status.ROLLED_BACK
    assert [action["path"] for action in world.log.actions("remove")] == [file.path for file in job.files]
    check(world)


def test_what_sent_nothing_is_rolled_back_though_the_table_is_gone() -> None:
    """Whatever happened to the table, none of it is ours."""
    world = World()
    world.job().begin()
    for key in [key for key in world.lake.contents() if key.startswith("_delta_log/")]:
        world.lake.delete(key)
    assert world.settle(Cause.EXCEPTION, Evidence(1, nothing_sent=True)).status is Status.ROLLED_BACK
