from __future__ import annotations

import json

import pytest

from safewriter.errors import UnknownOutcomeError, UnreadableCheckpointError
from safewriter.objects import StoreError
from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import CommitPoint, Status
from safewriter.settle.recovery import Cause, Evidence
from safewriter.tables.delta.history import DeltaHistory
from safewriter.tables.delta.revert import find_live, revert
from tests.unit.safewriter.delta_log import File, append_actions, creation, key_of
from tests.unit.safewriter.failing import Fault, Killed, Network, Stopped
from tests.unit.safewriter.invariants import check, documents
from tests.unit.safewriter.world import Job, World

OUTSIDE = [Cause.DEADLINE, Cause.KILLED, Cause.RETRY]


def operations(world: World) -> list[str]:
    return [info["operation"] for info in world.log.actions("commitInfo")]


def statuses(world: World) -> list[str]:
    return [document["status"] for document in documents(world)]


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


def test_a_fenced_commit_that_is_still_on_its_way_never_lands() -> None:
    """Its slot is taken, and the gate does not let it rebase behind a fence."""
    world = World()
    job = world.job().begin()
    job.prepare()
    world.settle()

    assert not job.rebase()
    check(world)


def test_a_new_commit_of_the_dead_epoch_is_refused() -> None:
    """A sandbox that thaws takes a fresh snapshot behind the fence; the gate finds the fence all the same."""
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

    document = world.settle(Cause.EXCEPTION, Evidence(1, nothing_sent=True, quiet=True))

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
    """A deadline or a kill says nothing about the block, so what has landed counts."""
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
    """Exactly our files go; what others committed since stays."""
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
    """A table cannot be made undone, and the verdict says so."""
    world = World(CommitPoint.SUCCESS, existing=False)
    world.job().begin().land()

    document = world.settle()

    assert document.reason == "killed: version 0 was undone, an empty table remains"
    assert world.log.live() == []
    check(world)


@pytest.mark.parametrize("cause", [Cause.EXCEPTION, Cause.KILLED])
def test_an_undo_that_is_refused_ends_committed_and_says_why(cause: Cause) -> None:
    """The rows are there, so nothing else would be true; the audit log has it too."""
    world = World(CommitPoint.SUCCESS)
    job = world.job().begin().land()
    # Somebody has read our rows and written them elsewhere: they are in the table, in a file of theirs.
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
    assert statuses(world)[:3] == ["in_progress", "rolling_back", "committed"]
    assert f"audit/{world.key}-1-undo_refused.jsonl" in world.bucket.contents()
    check(world)


@pytest.mark.parametrize(
    ("properties", "features", "word"),
    [({"delta.appendOnly": "true"}, ("appendOnly",), "append-only"), ({}, ("newThing",), "newThing")],
)
def test_a_table_that_allows_no_undo_keeps_the_commit(
    properties: dict[str, str], features: tuple[str, ...], word: str
) -> None:
    """What is known from the claim on ends the same way, and a second look changes nothing."""
    world = World(properties=properties, features=features)
    world.job().begin().land()

    document = world.settle(Cause.EXCEPTION)

    assert document.status is Status.COMMITTED
    assert word in (document.undo_refused or "")
    assert world.settle(Cause.EXCEPTION) == document
    check(world)


def test_a_change_of_the_schema_since_keeps_the_commit() -> None:
    """The removal might mean something else now."""
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


# -- going on where another settler has ended --------------------------------------------------------------------------


def begun_to_roll_back(*, reverted: bool) -> World:
    world = World(CommitPoint.WRITE)
    job = world.job().begin().land()
    assert job.held is not None
    moved = job.document.moved(Status.ROLLING_BACK, commit_version=2)
    assert world.checkpoints.replace(job.held, moved) is not None
    if reverted:
        log = DeltaHistory(world.lake, world.clock)
        ours = find_live(log.since(job.document.attempt), world.key, 1)
        assert ours is not None
        assert revert(log, job.document, log.since(job.document.attempt), ours, world.checkpoints, world.clock) is None
    return world


@pytest.mark.parametrize("cause", Cause)
def test_a_roll_back_that_has_begun_is_ended(cause: Cause) -> None:
    """Whatever the commit point says: a revert may be on its way, so nobody may answer committed any more."""
    world = begun_to_roll_back(reverted=False)

    assert world.settle(cause).status is Status.ROLLED_BACK
    assert operations(world)[-1] == "SAFEWRITER REVERT"
    check(world)


def test_a_revert_that_is_there_already_is_enough() -> None:
    """It is not written twice."""
    world = begun_to_roll_back(reverted=True)

    assert world.settle().status is Status.ROLLED_BACK
    assert operations(world).count("SAFEWRITER REVERT") == 1
    check(world)


def test_a_roll_back_is_not_forgotten_when_the_log_could_not_be_read_meanwhile() -> None:
    """After rolling_back and unknown the revert may still be on its way: the commit is undone, not acknowledged."""
    world = begun_to_roll_back(reverted=False)
    world.append_foreign()
    show_again = world.hide(key_of(2))
    with pytest.raises(UnknownOutcomeError):
        world.settle()
    assert world.document.status is Status.UNKNOWN
    show_again()

    assert world.settle(Cause.RETRY).status is Status.ROLLED_BACK
    check(world)


@pytest.mark.parametrize("status", [Status.COMMITTED, Status.ROLLED_BACK])
def test_a_terminal_document_is_left_alone(status: Status) -> None:
    """Settling again is one GET."""
    world = World()
    world.job().begin()
    if status is Status.COMMITTED:
        world.jobs[0].land()
    world.settle()
    before = world.bucket.contents(), world.lake.contents()
    network = Network()

    assert world.settle(Cause.EXCEPTION, network=network).status is status

    assert [sent.verb for sent in network.sent] == ["get"]
    assert (world.bucket.contents(), world.lake.contents()) == before


def test_there_may_be_nothing_to_settle() -> None:
    """An attempt that died before it claimed has no document."""
    assert World().recovery().settle("sw-none", Cause.KILLED) is None


@pytest.mark.parametrize("land", [True, False])
def test_a_guard_settles_only_its_own_epoch(land: object) -> None:
    """A guard that slept finds the write claimed by the next attempt, and leaves it."""
    world = World()
    world.job().begin()
    world.settle()
    second = world.job().begin()
    if land:
        second.land()
    before = world.lake.contents()

    document = world.settle(Cause.EXCEPTION, Evidence(1))

    assert (document.status, document.epoch) == (Status.IN_PROGRESS, 2)
    assert world.lake.contents() == before


# -- a settler that slept ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", Cause)
@pytest.mark.parametrize("commit_point", CommitPoint)
@pytest.mark.parametrize("landed", [True, False])
def test_a_stale_settler_never_touches_the_commit_of_a_later_attempt(
    cause: Cause, commit_point: CommitPoint, landed: object
) -> None:
    """Wherever it slept while a retry settled, claimed and committed: what it still sends changes nothing."""
    stop_after, asleep = 0, True
    while asleep:
        stop_after += 1
        world = World(commit_point)
        job = world.job().begin()
        if landed:
            job.land()
        network = Network(stop_after=stop_after)
        try:
            world.settle(cause, network=network)
            asleep = False
        except Stopped:
            pass
        world.owner_dies()
        assert world.job().run()
        check(world)
        committed = world.document.status, world.log.live()

        world.settle(cause, network=network.resumed())

        check(world)
        assert (world.document.status, world.log.live()) == committed
    assert stop_after > 5


# -- the creation of a table -------------------------------------------------------------------------------------------


def test_a_creation_that_was_never_sent_is_closed_by_a_tombstone() -> None:
    """An empty log cannot be fenced, so no commit is written; the note that comes later loses."""
    world = World(existing=False)
    job = world.job().begin()
    job.prepare()

    assert world.settle().status is Status.ROLLED_BACK
    assert world.log.versions == ()
    assert not job.note()
    assert world.settle().status is Status.ROLLED_BACK
    check(world)


def test_a_creation_whose_note_is_there_is_fenced_by_an_empty_table() -> None:
    """Version 0 has protocol and metaData of the commit that may be on its way, and none of its files."""
    world = World(existing=False, properties={"delta.enableChangeDataFeed": "true"}, features=("changeDataFeed",))
    job = world.job().begin()
    job.prepare()
    assert job.note()

    assert world.settle().status is Status.ROLLED_BACK

    assert [next(iter(action)) for action in world.log.read(0)] == ["commitInfo", "txn", "protocol", "metaData"]
    assert world.log.actions("metaData") == [creation({"delta.enableChangeDataFeed": "true"})[1]["metaData"]]
    assert operations(world) == ["SAFEWRITER FENCE"]
    assert not job.rebase()
    check(world)


@pytest.mark.parametrize("noted", [True, False])
def test_the_retry_of_a_creation_lands_once(noted: object) -> None:
    """On the empty table that the fence has left, or as a creation with a note of its own epoch."""
    world = World(existing=False)
    job = world.job().begin()
    job.prepare()
    if noted:
        job.note()
    world.settle()

    assert world.job().run()

    assert world.document.status is Status.COMMITTED
    check(world)


def test_a_creation_is_fenced_in_the_log_of_whoever_was_faster() -> None:
    """Somebody else has created the table meanwhile, so an ordinary fence will do."""
    world = World(existing=False)
    job = world.job().begin()
    job.prepare()
    assert job.note()
    world.log.create(table_id="another")
    world.append_foreign()

    assert world.settle().status is Status.ROLLED_BACK

    assert operations(world) == ["CREATE TABLE", "WRITE", "SAFEWRITER FENCE"]
    assert not job.rebase()
    check(world)


def test_a_creation_that_landed_is_committed() -> None:
    """Version 0 is ours."""
    world = World(existing=False)
    world.job().begin().land()

    document = world.settle()

    assert (document.status, document.attempt.commit_version) == (Status.COMMITTED, 0)
    check(world)


def test_a_fence_of_a_creation_has_an_in_commit_timestamp() -> None:
    """The note says that the table wants one."""
    world = World(
        existing=False, properties={"delta.enableInCommitTimestamps": "true"}, features=("inCommitTimestamp",)
    )
    job = world.job().begin()
    job.prepare()
    job.note()

    world.settle()

    assert world.log.actions("commitInfo", 0)[0]["inCommitTimestamp"] == world.now_ms


def test_in_commit_timestamps_grow_through_fence_undo_and_retry() -> None:
    """The history of a table has no step back."""
    world = World(
        CommitPoint.SUCCESS, properties={"delta.enableInCommitTimestamps": "true"}, features=("inCommitTimestamp",)
    )
    job = world.job().begin()
    world.log.append(*job.files, txn=(world.key, 1), inCommitTimestamp=world.now_ms + 500)
    world.log.append(File("later"), inCommitTimestamp=world.now_ms + 90_000)
    world.settle()
    world.job().begin()
    world.settle()

    stamps = [info["inCommitTimestamp"] for info in world.log.actions("commitInfo") if "inCommitTimestamp" in info]
    assert operations(world)[-2:] == ["SAFEWRITER REVERT", "SAFEWRITER FENCE"]
    assert stamps == sorted(set(stamps))
    assert len(stamps) == 4


# -- unknown -----------------------------------------------------------------------------------------------------------


def lose_a_version(world: World) -> None:
    world.append_foreign()
    world.append_foreign()
    world.lake.delete(key_of(2))


def drop(world: World) -> None:
    for key in list(world.lake.contents()):
        world.lake.delete(key)


def recreate(world: World) -> None:
    drop(world)
    world.sleep(1)
    world.log.create(table_id="another")
    for _ in range(4):
        world.log.append(File("x"))


@pytest.mark.parametrize(
    ("harm", "word"), [(lose_a_version, "log retention"), (drop, "dropped"), (recreate, "recreated")]
)
def test_a_log_that_cannot_tell_makes_the_outcome_unknown(harm: object, word: str) -> None:
    """Nothing is guessed: the document says unknown, and whoever looks again gets an error that says what to do."""
    world = World()
    world.job().begin()
    assert callable(harm)
    harm(world)

    for _ in range(2):
        with pytest.raises(UnknownOutcomeError, match=f"{word}.*by hand"):
            world.settle()
        assert world.document.status is Status.UNKNOWN
        assert word in (world.document.reason or "")
    assert statuses(world) == ["in_progress", "unknown"]


def test_nothing_is_cleaned_while_the_outcome_is_unknown() -> None:
    """The files may be those of a commit that nobody can see now."""
    world = World()
    job = world.job().begin()
    lose_a_version(world)
    world.grace_passes()
    with pytest.raises(UnknownOutcomeError):
        world.settle()

    assert world.recovery().clean(world.key, quiet_nonce=job.attempt.nonce) == 0
    assert job.leftover in world.lake.contents()
    assert world.marked() == (job.attempt.nonce,)


@pytest.mark.parametrize("landed", [True, False])
def test_an_unknown_outcome_is_settled_once_the_log_can_tell(landed: object) -> None:
    """Unknown is not an end."""
    world = World()
    job = world.job().begin()
    if landed:
        job.land()
    else:
        world.append_foreign()
    world.append_foreign()
    show_again = world.hide(key_of(2))
    with pytest.raises(UnknownOutcomeError):
        world.settle()
    assert world.document.status is Status.UNKNOWN
    show_again()

    assert world.settle().status is (Status.COMMITTED if landed else Status.ROLLED_BACK)
    check(world)


def test_a_store_that_does_not_answer_leaves_the_document_open() -> None:
    """An error of the store is no verdict."""
    world = World()
    world.job().begin()
    network = Network(Fault.REFUSE, 1, and_all_after=True)

    with pytest.raises(UnknownOutcomeError, match="could not be settled") as caught:
        world.settle(network=network)

    assert isinstance(caught.value.__cause__, StoreError)
    assert world.document.status is Status.IN_PROGRESS


def test_a_damaged_version_leaves_the_document_open() -> None:
    """Half a commit could be ours or anybody's."""
    world = World()
    world.job().begin()
    world.lake.put(key_of(2), b'{"commitInfo":')

    with pytest.raises(UnknownOutcomeError, match="is no commit"):
        world.settle()

    assert world.document.status is Status.IN_PROGRESS


def test_without_time_nothing_is_begun() -> None:
    """The document stays open for the next look, and nothing was sent."""
    world = World()
    world.job().begin()
    network = Network()

    with pytest.raises(UnknownOutcomeError, match="in time"):
        world.recovery(network, may_go_on=lambda: False).settle(world.key, Cause.KILLED)

    assert network.mutations == 0


def test_a_document_of_a_later_version_is_left_alone() -> None:
    """An old settler does not touch what it does not understand."""
    world = World()
    world.job().begin()
    body = json.loads(world.bucket.contents()[f"checkpoints/{world.key}.json"]) | {"schema_version": 2}
    world.bucket.put(f"checkpoints/{world.key}.json", json.dumps(body).encode())
    before = world.bucket.contents(), world.lake.contents()

    with pytest.raises(UnreadableCheckpointError):
        world.settle()

    assert (world.bucket.contents(), world.lake.contents()) == before


# -- races -------------------------------------------------------------------------------------------------------------


class Meddling(Checkpoints):
    """Somebody else changes the document just before each of the first changes."""

    def __init__(self, world: World, times: int) -> None:
        super().__init__(world.bucket)
        self._world = world
        self._times = times

    def replace(self, held, document):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201
        if self._times:
            self._times -= 1
            self._world.bucket.put(f"checkpoints/{held.document.write_key}.json", held.document.to_bytes())
        return super().replace(held, document)


@pytest.mark.parametrize("landed", [True, False])
@pytest.mark.parametrize("cause", [Cause.KILLED, Cause.EXCEPTION])
def test_a_lost_compare_and_swap_begins_again_and_ends_true(cause: Cause, landed: object) -> None:
    """Each lost race is a new reading, never a guess."""
    world = World()
    job = world.job().begin()
    if landed:
        job.land()
    recovery = world.recovery()
    recovery._checkpoints = Meddling(world, 3)

    stored = recovery.settle(world.key, cause)

    assert stored is not None
    expected = Status.COMMITTED if landed and cause is Cause.KILLED else Status.ROLLED_BACK
    assert world.document.status is stored.document.status is expected
    assert operations(world).count("SAFEWRITER FENCE") <= 1
    assert operations(world).count("SAFEWRITER REVERT") <= 1


def test_a_settler_that_always_loses_gives_up() -> None:
    """The rounds are bounded."""
    world = World()
    world.job().begin()
    recovery = world.recovery()
    recovery._checkpoints = Meddling(world, 10**9)

    with pytest.raises(UnknownOutcomeError):
        recovery.settle(world.key, Cause.KILLED)


def test_a_landing_between_look_and_fence_is_seen() -> None:
    """The commit takes the slot of the fence, so the fence looks again and finds it."""
    world = World()
    job = world.job().begin()
    job.prepare()
    flying = [job.send]

    def before(number: int) -> None:
        if network.sent[-1].verb == "create" and flying:
            flying.pop()()

    network = Network(before=before)

    document = world.settle(network=network)

    assert (document.status, operations(world)[-1]) == (Status.COMMITTED, "WRITE")
    check(world)


# -- the audit log -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("audit_log", [True, False])
def test_a_roll_back_is_audited_if_that_is_wanted(audit_log: object) -> None:
    """A commit is none of the audit log's business."""
    for landed in (True, False):
        world = World()
        job = world.job().begin()
        if landed:
            job.land()

        world.recovery(audit_log=audit_log).settle(world.key, Cause.KILLED)

        lines = [key for key in world.bucket.contents() if key.startswith("audit/")]
        assert bool(lines) is (bool(audit_log) and not landed)


def test_a_roll_back_whose_settler_died_is_audited_by_the_next_look() -> None:
    """Between the verdict and its line lies a moment."""
    world = World()
    world.job().begin()
    world.settle(network=Network(Fault.REFUSE, 3, and_all_after=True))  # the fence, the verdict, the audit log
    key = f"audit/{world.key}-1-rolled_back.jsonl"
    assert (world.document.status, key in world.bucket.contents()) == (Status.ROLLED_BACK, False)

    world.recovery().clean(world.key)

    assert key in world.bucket.contents()


def test_an_audit_log_that_cannot_be_written_does_not_change_the_verdict() -> None:
    """The verdict stands before the hygiene begins."""
    world = World()
    world.job().begin()
    network = Network(Fault.REFUSE, 3)  # the fence, the verdict, the audit log

    document = world.settle(network=network)

    assert network.fired
    assert document.status is Status.ROLLED_BACK


def test_a_killed_settler_leaves_what_it_has_done() -> None:
    """The harness itself: a kill goes through every handler of the code under test."""
    world = World()
    world.job().begin()

    with pytest.raises(Killed):
        world.settle(network=Network(Fault.KILL_AFTER, 1))

    assert world.document.status is Status.IN_PROGRESS
    assert operations(world)[-1] == "SAFEWRITER FENCE"


def test_two_attempts_that_committed_are_both_seen_by_the_checks() -> None:
    """The harness itself: a doubled batch does not go unnoticed."""
    world = World()
    world.job().begin().land()
    second = Job(world, "f" * 16, Network())
    world.jobs.append(second)
    second.files = (File("double"),)
    world.log.commit(append_actions((File("double"),)))
    world.lake.put("double", b"")

    with pytest.raises(AssertionError):
        check(world)


def requests_to_verdict(world: World, cause: Cause) -> list[str]:
    """Settle as the supervisor of a killed job does; return its requests up to the one that writes the verdict."""
    network = Network()
    document = world.settle(cause, network=network)
    assert document.status in {Status.COMMITTED, Status.ROLLED_BACK}
    requests = [f"{sent.verb} {sent.key.rpartition('/')[0]}" for sent in network.sent]
    writes = [number for number, request in enumerate(requests, 1) if request == "replace checkpoints"]
    return requests[
        : writes[1 if document.attempt.commit_version is not None and "undone" in str(document.reason) else 0]
    ]


@pytest.mark.parametrize(
    ("commit_point", "landed", "status", "bound"),
    [
        (CommitPoint.WRITE, False, Status.ROLLED_BACK, 5),
        (CommitPoint.WRITE, True, Status.COMMITTED, 5),
        (CommitPoint.SUCCESS, True, Status.ROLLED_BACK, 8),
    ],
)
def test_settling_takes_few_requests_and_no_more_on_a_table_with_a_long_history(
    commit_point: CommitPoint, status: Status, bound: int, *, landed: bool
) -> None:
    """Every request waits for the one before, so their number is the time that a verdict takes."""

    def requests(commits: int) -> list[str]:
        world = World(commit_point)
        for _ in range(commits):
            world.append_foreign()
        job = world.job().begin()
        if landed:
            job.land()
        found = requests_to_verdict(world, Cause.KILLED)
        assert world.document.status is status
        return found

    short = requests(10)
    assert len(short) <= bound, short
    assert requests(1_000) == short


def test_what_sent_nothing_is_rolled_back_though_the_table_is_gone() -> None:
    """Whatever has become of the table, none of it is ours."""
    world = World()
    world.job().begin()
    for key in [key for key in world.lake.contents() if key.startswith("_delta_log/")]:
        world.lake.delete(key)
    assert world.settle(Cause.EXCEPTION, Evidence(1, nothing_sent=True)).status is Status.ROLLED_BACK
