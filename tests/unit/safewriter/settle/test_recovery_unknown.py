"""A log or a store that does not decide: the document stays open, and nothing is guessed."""

from __future__ import annotations

import json

import pytest

from safewriter.errors import UnknownOutcomeError, UnreadableCheckpointError
from safewriter.objects import StoreError
from safewriter.record.document import Status
from safewriter.settle.recovery import Cause
from tests.unit.safewriter.delta_log import File, key_of
from tests.unit.safewriter.failing import Fault, Network
from tests.unit.safewriter.invariants import check
from tests.unit.safewriter.settle.traces import statuses
from tests.unit.safewriter.world import World


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
    """The document says unknown, and the next settler gets an error that says what to do."""
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
    """The files may belong to a commit that cannot be seen now."""
    world = World()
    job = world.job().begin()
    lose_a_version(world)
    world.grace_passes()
    with pytest.raises(UnknownOutcomeError):
        world.settle()

    assert world.recovery().clean(world.key, ended_nonce=job.attempt.nonce) == 0
    assert job.leftover in world.lake.contents()
    assert world.marked() == (job.attempt.nonce,)


@pytest.mark.parametrize("landed", [True, False])
def test_an_unknown_outcome_is_settled_once_the_log_can_tell(landed: object) -> None:
    """Unknown is not final."""
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
    """A torn commit could be ours or another writer's."""
    world = World()
    world.job().begin()
    world.lake.put(key_of(2), b'{"commitInfo":')

    with pytest.raises(UnknownOutcomeError, match="is no commit"):
        world.settle()

    assert world.document.status is Status.IN_PROGRESS


def test_without_time_nothing_is_begun() -> None:
    """The document stays open for the next settler, and nothing was sent."""
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
