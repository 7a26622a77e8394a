"""A claim that waits for another owner's sign of life, and the events in the meantime."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from safewriter.errors import AnotherAttemptError, TooLateError, TryAgainError
from safewriter.record.document import Status
from safewriter.record.liveness import LEASE_MS
from tests.unit.safewriter.job import LEAD_MS
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from collections.abc import Callable

    from safewriter.block.claim import Claim
    from tests.unit.safewriter.job import Job


def claim_while(job: Job, *happens: Callable[[], object]) -> Claim:
    """Claim; one thing after the other `happens` at its naps, the last one at each further nap."""
    pending = [*happens]

    def sleep(seconds: float) -> None:
        job.world.sleep(seconds)
        (pending.pop(0) if len(pending) > 1 else pending[0])()

    return dataclasses.replace(job.claimer, sleep=sleep).claim(job.state())


def test_a_document_that_is_gone_while_its_owner_is_watched_ends_the_claim() -> None:
    """Somebody has removed it by hand; the next attempt looks at the table as it is by then."""
    world = World()
    world.job().begin()

    with pytest.raises(TryAgainError, match="was there, and is gone"):
        claim_while(world.job(), lambda: world.bucket.delete(f"checkpoints/{world.key}.json"))
    assert world.checkpoints.read(world.key) is None


def test_an_owner_that_has_changed_its_document_is_watched_again_and_not_settled() -> None:
    """A change is a sign of life: the claim leaves that owner alone."""
    world = World()
    owner = world.job().begin()

    held = owner.held
    assert held is not None

    with pytest.raises(AnotherAttemptError):
        claim_while(
            world.job(),
            lambda: world.checkpoints.replace(held, owner.document),
            lambda: world.checkpoints.renew_lease(world.key, owner.attempt.nonce),
        )
    assert world.document.status is Status.IN_PROGRESS


def test_a_claim_waits_no_longer_than_its_own_deadline_lets_it() -> None:
    """Not until the other's lease expires, if its own time for a write ends before that."""
    world = World()
    world.job().begin()
    began = world.now_ms
    job = world.job(deadline_ms=LEAD_MS + LEASE_MS // 2)

    with pytest.raises(TooLateError):
        job.claimer.claim(job.state())
    assert world.now_ms - began == LEASE_MS // 2
