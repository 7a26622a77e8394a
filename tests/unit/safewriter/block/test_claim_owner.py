"""A claim that finds an owner: alive, dead, or settled meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.errors import (
    AnotherAttemptError,
    TryAgainError,
    UnknownOutcomeError,
)
from safewriter.record.document import Status
from safewriter.record.liveness import GRACE_MS, LEASE_MS
from tests.unit.safewriter.block.claiming import beating, claims
from tests.unit.safewriter.delta_log import key_of
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.invariants import check, documents
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from tests.unit.safewriter.job import Job


def test_a_live_owner_is_left_alone() -> None:
    """Its lease is renewed while this attempt watches, so the attempt raises "try again" and changes nothing."""
    world = World()
    owner = world.job().begin()
    before = world.bucket.contents()[f"checkpoints/{world.key}.json"], world.lake.contents()
    job = world.job()
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        world.sleep(seconds)
        if len(naps) == 5:
            world.checkpoints.renew_lease(world.key, owner.attempt.nonce)

    with pytest.raises(AnotherAttemptError, match=f"{owner.attempt.nonce}.*request.*is alive") as caught:
        claims(job, sleep=sleep)

    assert caught.value.exit_code == 75
    assert len(naps) == 5
    assert (world.bucket.contents()[f"checkpoints/{world.key}.json"], world.lake.contents()) == before


def test_an_owner_that_renewed_its_lease_long_ago_is_waited_for() -> None:
    """A lease that exists but is not renewed expires, and then its owner is dead."""
    world = World()
    owner = world.job().begin()
    world.now_ms += 5_000
    world.checkpoints.renew_lease(world.key, owner.attempt.nonce)
    world.now_ms += 5_000
    began_ms = world.now_ms

    document = world.job().claim().checkpoint.document

    assert (document.epoch, document.status) == (2, Status.IN_PROGRESS)
    assert LEASE_MS - 6_000 <= world.now_ms - began_ms <= LEASE_MS
    check(world)


def test_an_owner_whose_lease_has_expired_is_settled_at_once() -> None:
    """By the store's clock, without a nap."""
    world = World()
    world.job().begin()
    world.owner_dies()

    def sleep(_: float) -> None:
        raise AssertionError

    document = claims(world.job(), sleep=sleep).checkpoint.document

    assert (document.epoch, document.status) == (2, Status.IN_PROGRESS)
    assert [moved["status"] for moved in documents(world)][:2] == ["in_progress", "rolled_back"]
    check(world)


def test_a_dead_owner_whose_commit_has_landed_leaves_nothing_to_do() -> None:
    """The retry settles it as committed and is skipped."""
    world = World()
    world.job().begin().land()
    world.owner_dies()

    claim = world.job().claim()

    assert claim.already_committed
    assert (claim.checkpoint.document.status, claim.checkpoint.document.epoch) == (Status.COMMITTED, 1)
    assert claim.checkpoint.document.attempt.settled_by == "retry"
    check(world)


def test_a_deadline_and_its_grace_end_an_owner_that_still_renews_its_lease() -> None:
    """None of its requests can still arrive."""
    world = World()
    owner = world.job(deadline_ms=100_000).begin()
    world.now_ms += 100_000 + GRACE_MS + 1
    world.checkpoints.renew_lease(world.key, owner.attempt.nonce)

    assert world.job().claim().checkpoint.document.epoch == 2


def test_an_owner_that_is_settled_while_we_wait_makes_room() -> None:
    """The document changes, so it is read again."""
    world = World()
    world.job().begin()
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        world.settle()

    assert claims(world.job(), sleep=sleep).checkpoint.document.epoch == 2
    assert len(naps) == 1


def test_an_attempt_that_was_faster_is_not_settled() -> None:
    """Between the look at the dead owner and the settling another retry, which is alive, has claimed."""
    world = World()
    world.job().begin()
    world.owner_dies()
    faster: list[Job] = []

    def before(_: int) -> None:
        # The look at the lease has found the owner dead; the settling comes next.
        keys = [sent.key for sent in network.sent[-2:]]
        if not faster and keys[0].startswith("leases") and keys[-1].startswith("checkpoints"):
            faster.append(world.job())
            faster[0].begin()

    network = Network(before=before)
    job = world.job(network)

    with pytest.raises(TryAgainError):
        claims(
            job,
            sleep=beating(world, faster),
        )

    assert faster
    assert (world.document.epoch, world.document.owner) == (2, faster[0].attempt.nonce)
    assert world.document.status is Status.IN_PROGRESS


def test_waiting_is_bounded() -> None:
    """An owner that is neither dead nor alive (its clock stands still) is given up on."""
    world = World()
    world.job().begin()
    naps: list[float] = []

    with pytest.raises(AnotherAttemptError):
        claims(world.job(), sleep=naps.append)

    assert 0 < len(naps) <= 2 * LEASE_MS // 1000


def test_a_write_whose_truth_cannot_be_found_out_is_not_claimed() -> None:
    """The settler's error is raised; nothing is written a second time on a guess."""
    world = World()
    world.job().begin()
    world.owner_dies()
    world.append_foreign()
    world.append_foreign()
    world.hide(key_of(2))

    with pytest.raises(UnknownOutcomeError):
        world.job().claim()

    assert world.document.status is Status.UNKNOWN
