"""The line in the audit log for a rollback."""

from __future__ import annotations

import pytest

from safewriter.record.document import Status
from safewriter.settle.recovery import Cause
from tests.unit.safewriter.failing import Fault, Network
from tests.unit.safewriter.world import World


@pytest.mark.parametrize("audit_log", [True, False])
def test_a_roll_back_is_audited_if_that_is_wanted(audit_log: object) -> None:
    """The audit log has no line for a commit."""
    for landed in (True, False):
        world = World()
        job = world.job().begin()
        if landed:
            job.land()

        world.recovery(audit_log=audit_log).settle(world.key, Cause.KILLED)

        lines = [key for key in world.bucket.contents() if key.startswith("audit/")]
        assert bool(lines) is (bool(audit_log) and not landed)


def test_a_roll_back_whose_settler_died_is_audited_by_the_next_look() -> None:
    """A kill may come between the verdict and its line."""
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
