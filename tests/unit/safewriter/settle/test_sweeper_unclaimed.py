"""Attempts that died before their claim, and markers that no document knows."""

from __future__ import annotations

import pytest

from safewriter.errors import TryAgainError
from safewriter.record.document import Status
from safewriter.settle.one_write import Action
from tests.unit.safewriter.delta_log import key_of
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.settle.sweeps import look, sweep
from tests.unit.safewriter.world import World


def test_an_attempt_that_died_before_its_claim_is_closed_and_cannot_claim_any_more() -> None:
    """A claim that was sent before and lands later loses; a healthy retry does not."""
    world = World()
    frozen = world.job()
    before = frozen.state()
    frozen.claimer.announce()

    assert look(world).action is Action.ALIVE
    world.grace_passes()
    found = look(world)
    assert (found.action, found.status) == (Action.SETTLED, Status.ROLLED_BACK)
    assert world.document.reason == "sweeper: the attempt ended before it had claimed the write"
    assert world.marked() == ()
    late = frozen.claimer
    with pytest.raises(TryAgainError):
        late.claim(before)
    assert frozen.checkpoints.create(late._first(before, None)) is None
    assert world.job().run()
    assert world.document.status is Status.COMMITTED


def test_a_clean_up_after_a_write_that_was_closed_before_its_claim_reads_what_came_since_its_own() -> None:
    """The attempt that never claimed has written nothing, so the clean-up need not read from the first version on."""
    world = World()
    world.job().claimer.announce()
    world.grace_passes()
    assert look(world).action is Action.SETTLED
    world.append_foreign()
    world.log.tell()
    world.job().begin()
    world.grace_passes()
    network = Network()

    assert world.settle(network=network).status is Status.ROLLED_BACK
    assert world.recovery(network).clean(world.key) == 0
    read = {sent.key for sent in network.sent if sent.verb == "get"}
    assert read.isdisjoint({key_of(version) for version in range(world.log.head - 1)})
    assert world.document.attempt.cleaned


def test_an_attempt_without_a_deadline_is_waited_for_for_a_day() -> None:
    """A claim takes seconds, so an attempt that has not claimed after a day never will."""
    world = World()
    world.job(deadline_ms=None).claimer.announce()
    world.sleep(23 * 3600)
    assert look(world).action is Action.ALIVE
    world.sleep(2 * 3600)
    assert look(world).action is Action.SETTLED


def test_a_claim_that_comes_between_is_left_alone() -> None:
    """The tombstone loses, and the marker stays."""
    world = World()
    first = world.job()
    first.claimer.announce()
    world.grace_passes()
    late = world.job()

    def overtake(_: int) -> None:
        if network.sent[-1].verb == "create":
            late.claim()

    network = Network(before=overtake)
    sweep(world, network=network)
    assert world.document.owner == late.attempt.nonce
    assert set(world.marked()) == {first.attempt.nonce, late.attempt.nonce}


def test_a_marker_that_a_settled_write_does_not_know_goes_when_its_time_is_over() -> None:
    """An attempt that found the write committed, and died before it removed its marker; its late claim loses."""
    world = World()
    assert world.job().run()
    world.grace_passes()
    sweep(world)
    second = world.job()
    second.claimer.announce()
    stored = world.checkpoints.read(world.key)
    assert stored is not None
    assert look(world).action is Action.ALIVE
    assert world.marked() == (second.attempt.nonce,)
    world.grace_passes()
    assert look(world).action is Action.NONE
    assert world.marked() == ()
    assert world.checkpoints.replace(stored, stored.document) is None


def test_a_marker_that_an_open_write_does_not_know_goes_without_a_change_of_the_document() -> None:
    """Its owner needs the document's present ETag."""
    world = World()
    stranger = world.job(deadline_ms=1_000 + 30_000)
    stranger.claimer.announce()
    world.sleep(120)
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
