"""Claims that meet, and requests of a claim that get no answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.errors import (
    AnotherAttemptError,
    TryAgainError,
)
from safewriter.objects import StoreError
from safewriter.settle.recovery import Cause
from tests.unit.safewriter.block.claiming import beating, claims
from tests.unit.safewriter.failing import Fault, Network
from tests.unit.safewriter.invariants import check
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from tests.unit.safewriter.job import Job


def lose_race(world: World, verb: str) -> str:
    """Let another attempt claim the write just before this one's request; return the winner's nonce."""
    other: list[Job] = []

    def before(_: int) -> None:
        if network.sent[-1].verb == verb and not other:
            other.append(world.job())
            other[0].claim()

    network = Network(before=before)
    job = world.job(network)

    with pytest.raises(AnotherAttemptError):
        claims(
            job,
            sleep=beating(world, other),
        )
    return other[0].attempt.nonce


def test_of_two_first_claims_one_wins() -> None:
    """The other finds a live owner."""
    world = World()
    winner = lose_race(world, "create")
    assert world.document.owner == winner


def test_of_two_retries_one_wins() -> None:
    """The second compare-and-swap is lost, and then that retry finds a live owner."""
    world = World()
    world.job().begin()
    world.settle()
    winner = lose_race(world, "replace")
    assert (world.document.epoch, world.document.owner) == (2, winner)


def undoing(world: World, *verbs: str) -> Network:
    """Return a network on which the commit is undone and its document removed, just before such a request for it."""

    def before(_: int) -> None:
        if network.sent[-1].verb in verbs and network.sent[-1].key == f"checkpoints/{world.key}.json":
            world.settle(Cause.EXCEPTION)
            world.bucket.delete(f"checkpoints/{world.key}.json")

    network = Network(before=before)
    return network


def test_a_document_that_vanishes_ends_the_claim() -> None:
    """What the claim has found in the table is older: somebody else has begun and ended the write since."""
    world = World()
    world.job().begin().land()
    job = world.job(undoing(world, "get"))

    with pytest.raises(TryAgainError, match="was there, and is gone"):
        job.claimer.claim(job.state())
    assert world.checkpoints.read(world.key) is None


def test_a_claim_that_has_stood_still_skips_no_write_that_was_undone_meanwhile() -> None:
    """Its own document would say committed of rows that nobody has."""
    world = World()
    first = world.job().begin().land()
    version = world.log.head
    job = world.job(undoing(world, "create", "get"))

    with pytest.raises(TryAgainError, match="has changed since it was looked at"):
        job.claimer.claim(first.state(), version)
    assert world.log.live() == ["foreign-0.parquet"]
    assert world.checkpoints.read(world.key) is None


def test_a_document_that_changes_without_end_is_given_up_on() -> None:
    """The rounds are bounded, and nothing was claimed."""
    world = World()
    world.job().begin()
    world.settle()

    def before(_: int) -> None:
        if network.sent[-1].verb == "replace":
            world.bucket.put(f"checkpoints/{world.key}.json", world.document.to_bytes())

    network = Network(before=before)
    job = world.job(network)

    with pytest.raises(TryAgainError, match="changes faster"):
        claims(job)

    assert world.document.epoch == 1
    assert len(network.sent) < 200


@pytest.mark.parametrize("fault", [Fault.REFUSE, Fault.LOSE_REPLY, Fault.LATE])
@pytest.mark.parametrize("first", [True, False])
def test_a_claim_that_gets_no_answer_ends_with_the_stores_error(fault: Fault, first: object) -> None:
    """It is unknown whether it landed; if so, the next attempt finds an owner without a sign of life."""
    world = World()
    if not first:
        world.job().begin()
        world.settle()
    network = Network(fault, 1 if first else 2)
    job = world.job(network)

    with pytest.raises(StoreError):
        claims(job)
    network.land()

    world.owner_dies()
    assert world.job().run()
    check(world)
