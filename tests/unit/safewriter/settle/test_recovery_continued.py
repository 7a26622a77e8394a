"""A settler continues where another one has ended, or comes late after it has slept."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from safewriter.errors import UnknownOutcomeError
from safewriter.record.document import CommitPoint, Status
from safewriter.settle.recovery import Cause, Evidence
from safewriter.tables.delta.history import DeltaHistory
from safewriter.tables.delta.undo import find_live, undo
from tests.unit.safewriter.delta_log import key_of
from tests.unit.safewriter.failing import Network, Stopped
from tests.unit.safewriter.invariants import check
from tests.unit.safewriter.settle.traces import operations
from tests.unit.safewriter.world import World

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
        assert undo(log, job.document, log.since(job.document.attempt), ours, world.clock) is None
    return world


@pytest.mark.parametrize("cause", Cause)
def test_a_roll_back_that_has_begun_is_ended(cause: Cause) -> None:
    """Whatever the commit point: a revert may still land, so committed would be untrue."""
    world = begun_to_roll_back(reverted=False)

    assert world.settle(cause).status is Status.ROLLED_BACK
    assert operations(world)[-1] == "SAFEWRITER REVERT"
    check(world)


def test_a_revert_that_is_there_already_is_enough() -> None:
    """The revert is not written twice."""
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


@pytest.mark.slow
@pytest.mark.parametrize("cause", Cause)
@pytest.mark.parametrize("commit_point", CommitPoint)
@pytest.mark.parametrize("landed", [True, False])
def test_a_stale_settler_never_touches_the_commit_of_a_later_attempt(
    cause: Cause, commit_point: CommitPoint, landed: object
) -> None:
    """Wherever it slept while a retry settled, claimed and committed: its late requests change nothing."""
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


@pytest.mark.parametrize(
    ("commit_point", "status"), [(CommitPoint.WRITE, Status.COMMITTED), (CommitPoint.SUCCESS, Status.UNKNOWN)]
)
def test_a_claim_that_is_later_than_its_document_does_not_hide_a_later_attempts_commit(
    commit_point: CommitPoint, status: Status
) -> None:
    """The document of that attempt was deleted, and a request of a dead one makes it anew with an epoch of before."""
    world = World(commit_point)
    dead = world.job()
    late = dead.claimer._first(dead.state())
    world.job().begin()
    world.owner_dies()
    assert world.job().run()
    version = world.log.head
    assert world.document.epoch == 2
    world.bucket.delete(f"checkpoints/{world.key}.json")
    assert dead.checkpoints.create(late) is not None

    with nullcontext() if status is Status.COMMITTED else pytest.raises(UnknownOutcomeError, match="later attempt"):
        world.settle()

    assert (world.document.status, world.document.epoch) == (status, 1)
    assert world.document.attempt.commit_version == (version if status is Status.COMMITTED else None)
