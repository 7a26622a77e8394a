"""Leases, and when an owner counts as dead."""

from __future__ import annotations

import pytest

from safewriter.record.checkpoints import Checkpoints, past_grace
from safewriter.record.liveness import GRACE_MS, LEASE_MS
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.world import World


def test_a_lease_is_dated_by_the_store() -> None:
    """The writer's own clock plays no part."""
    world = World()
    job = world.job()
    job.claim()
    world.now_ms += 1_000
    world.checkpoints.renew_lease(world.key, job.attempt.nonce)
    then = world.now()
    world.now_ms += 5_000
    stored = world.checkpoints.read(world.key)

    assert stored is not None
    assert world.checkpoints.sighting(stored).last_sign == then


@pytest.mark.parametrize(("passed_ms", "dead"), [(0, False), (LEASE_MS, False), (LEASE_MS + 1, True)])
def test_an_owner_without_a_sign_of_life_is_dead(passed_ms: int, dead: object) -> None:
    """Without a lease the document itself is the last sign of life."""
    world = World()
    world.job().claim()
    world.now_ms += passed_ms
    stored = world.checkpoints.read(world.key)

    assert stored is not None
    assert world.checkpoints.sighting(stored).is_dead is dead


@pytest.mark.parametrize(("passed_ms", "dead"), [(LEASE_MS, False), (LEASE_MS + 1, True)])
def test_a_renewed_lease_keeps_an_owner_alive(passed_ms: int, dead: object) -> None:
    """The newest sign of life counts."""
    world = World()
    job = world.job()
    job.claim()
    world.now_ms += LEASE_MS
    world.checkpoints.renew_lease(world.key, job.attempt.nonce)
    world.now_ms += passed_ms
    stored = world.checkpoints.read(world.key)

    assert stored is not None
    assert world.checkpoints.sighting(stored).is_dead is dead


def test_the_lease_of_another_attempt_says_nothing() -> None:
    """A duplicate's lease does not keep a dead owner alive."""
    world = World()
    world.job().claim()
    world.owner_dies()
    world.checkpoints.renew_lease(world.key, "another")
    stored = world.checkpoints.read(world.key)

    assert stored is not None
    assert world.checkpoints.sighting(stored).is_dead


@pytest.mark.parametrize(("over_ms", "dead"), [(GRACE_MS, False), (GRACE_MS + 1, True)])
def test_nobody_lives_past_deadline_and_grace(over_ms: int, dead: object) -> None:
    """A lease that is renewed after that proves nothing."""
    world = World()
    job = world.job(deadline_ms=100_000)
    job.claim()
    world.now_ms += 100_000 + over_ms
    world.checkpoints.renew_lease(world.key, job.attempt.nonce)
    stored = world.checkpoints.read(world.key)

    assert stored is not None
    assert world.checkpoints.sighting(stored).is_dead is dead
    assert past_grace(job.document.attempt, world.now()) is dead


def test_without_a_deadline_the_grace_of_an_open_attempt_never_passes() -> None:
    """No deadline is not a deadline of zero."""
    world = World()
    job = world.job(deadline_ms=None)
    job.claim()
    world.now_ms += 10**12

    assert not past_grace(job.document.attempt, world.now())


def test_after_the_grace_no_lease_is_read() -> None:
    """It could change nothing, and a sweep reads many documents."""
    network, world = Network(), World()
    world.job().begin()
    world.grace_passes()
    checkpoints = Checkpoints(network.store(world.bucket))
    stored = checkpoints.read(world.key)
    assert stored is not None

    assert checkpoints.sighting(stored).is_dead
    assert [sent.key for sent in network.sent] == [f"checkpoints/{world.key}.json"]
