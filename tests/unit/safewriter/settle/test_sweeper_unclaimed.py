"""Attempts that died before their claim, and markers that no document knows."""

from __future__ import annotations

from safewriter.record.document import Status
from safewriter.settle.one_write import Action
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.settle.sweeps import look, sweep
from tests.unit.safewriter.world import World

DAY_S = 86_400


def test_a_claim_that_lands_behind_a_sweep_is_settled_by_the_next() -> None:
    """The marker waits for it; a healthy retry writes the rows."""
    world = World()
    frozen = world.job()
    before = frozen.state()
    frozen.claimer.announce()

    assert look(world).action is Action.ALIVE
    world.grace_passes()
    assert look(world).action is Action.UNCLAIMED
    assert frozen.checkpoints.create(frozen.claimer._first(before, None)) is not None

    found = look(world)
    assert (found.action, found.status) == (Action.SETTLED, Status.ROLLED_BACK)
    assert world.job().run()
    assert world.document.status is Status.COMMITTED


def test_an_attempt_without_a_deadline_is_waited_for_for_a_day() -> None:
    """A claim takes seconds, so an attempt that has not claimed after a day never will."""
    world = World()
    world.job(deadline_ms=None).claimer.announce()
    world.sleep(23 * 3600)
    assert look(world).action is Action.ALIVE
    world.sleep(2 * 3600)
    assert look(world).action is Action.UNCLAIMED
    assert world.marked() == ()


def test_a_claim_that_comes_between_is_left_alone() -> None:
    """The marker of the attempt that has not claimed stays."""
    world = World()
    first = world.job()
    first.claimer.announce()
    world.grace_passes()
    late = world.job()

    def overtake(_: int) -> None:
        if network.sent[-1].key.startswith("_delta_log/") and late.held is None:
            late.begin()

    network = Network(before=overtake)
    (found,) = sweep(world, network=network).looks
    assert found.action is Action.ALIVE
    assert world.document.owner == late.attempt.nonce
    assert set(world.marked()) == {first.attempt.nonce, late.attempt.nonce}


def test_a_marker_that_a_settled_write_does_not_know_goes_after_a_day() -> None:
    """An attempt that found the write committed, and died before it removed its marker."""
    world = World()
    assert world.job().run()
    world.grace_passes()
    sweep(world)
    second = world.job()
    second.claimer.announce()
    world.sleep(DAY_S)
    assert look(world).action is Action.UNCLAIMED
    assert world.marked() == (second.attempt.nonce,)
    world.sleep(1)
    assert look(world).action is Action.NONE
    assert world.marked() == ()


def test_a_claim_of_a_rolled_back_write_that_lands_behind_a_sweep_is_settled_by_the_next() -> None:
    """The marker waits for it."""
    world = World()
    world.job().begin()
    world.grace_passes()
    assert look(world).status is Status.ROLLED_BACK
    frozen = world.job()
    frozen.claimer.announce()
    read = world.checkpoints.read(world.key)
    assert read is not None
    world.grace_passes()
    assert look(world).action is Action.UNCLAIMED
    record = frozen.claimer._record(2, frozen.state())
    assert (
        world.checkpoints.replace(read, read.document.claimed(record, frozen.claimer.commit_point, "job")) is not None
    )

    found = look(world)
    assert (found.action, found.status, world.document.epoch) == (Action.SETTLED, Status.ROLLED_BACK, 2)


def test_a_marker_that_an_open_write_does_not_know_goes_without_a_change_of_the_document() -> None:
    """Its owner needs the document's present ETag."""
    world = World()
    stranger = world.job()
    stranger.claimer.announce()
    world.sleep(DAY_S + 1)
    owner = world.job().begin()
    assert set(world.marked()) == {stranger.attempt.nonce, owner.attempt.nonce}
    assert look(world).action is Action.ALIVE
    assert world.marked() == (owner.attempt.nonce,)
    owner.land()
    assert owner.success()


def test_a_commit_that_is_older_than_the_only_marker_is_found() -> None:
    """The attempt that made it is clean, so its marker is gone; a later one was skipped, and died with its marker."""
    world = World()
    assert world.job().run()
    world.grace_passes()
    assert look(world).action is Action.CLEANED
    world.sleep(3600)
    assert world.job().claim().already_committed
    world.bucket.delete(f"checkpoints/{world.key}.json")
    world.grace_passes()

    found = look(world)

    assert (found.action, found.status) == (Action.SETTLED, Status.COMMITTED)
