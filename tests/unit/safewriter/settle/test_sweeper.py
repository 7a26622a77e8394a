"""The sweeper settles abandoned writes, cleans up after the grace, spares living ones, and works off a backlog."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import pytest

from safewriter.record.document import CommitPoint, Status
from safewriter.settle.one_write import Action
from safewriter.settle.recovery import Cause
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.invariants import check
from tests.unit.safewriter.settle.sweeps import look, sweep
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from safewriter.settle.sweeper import Sweep


@pytest.mark.parametrize(
    ("commit_point", "landed", "status"),
    [
        (CommitPoint.WRITE, False, Status.ROLLED_BACK),
        (CommitPoint.WRITE, True, Status.COMMITTED),
        (CommitPoint.SUCCESS, True, Status.ROLLED_BACK),
    ],
)
def test_a_dead_write_is_settled_then_cleaned_and_then_it_costs_nothing(
    commit_point: CommitPoint, status: Status, *, landed: bool
) -> None:
    """Its marker stays until the grace is over, and then goes with the files."""
    world = World(commit_point)
    job = world.job().begin()
    if landed:
        job.land()
    world.owner_dies()

    found = look(world)
    assert (found.action, found.status) == (Action.SETTLED, status)
    assert world.document.attempt.settled_by == Cause.SWEEPER.value
    assert world.marked() == (job.attempt.nonce,)
    assert look(world).action is Action.CLEANED
    world.grace_passes()
    assert look(world).action is Action.CLEANED
    assert world.marked() == ()
    assert sweep(world).looks == ()
    check(world)


def test_what_lives_is_left_alone_and_its_age_is_told() -> None:
    """The sweep changes no byte, and reports since when the write is open, for the alarm on old writes."""
    world = World()
    world.job().begin()
    began = world.now()
    before = world.bucket.contents() | world.lake.contents()
    found = sweep(world)
    assert [one.action for one in found.looks] == [Action.ALIVE]
    assert found.open_since == began
    assert world.bucket.contents() | world.lake.contents() == before


def test_a_retry_that_has_claimed_since_the_look_is_left_alone() -> None:
    """Only the attempt that was found dead is dead, not the one that owns the write a moment later."""
    world = World()
    world.job().begin()
    world.owner_dies()

    def overtake(number: int) -> None:
        if number == lease:
            world.settle(Cause.RETRY)
            world.job().begin()

    probe = Network()
    sweep_copy = World()
    sweep_copy.job().begin()
    sweep_copy.owner_dies()
    sweep(sweep_copy, network=probe)
    lease = 1 + next(number for number, sent in enumerate(probe.sent, 1) if sent.key.startswith("leases/"))

    sweep(world, network=Network(before=overtake))
    assert (world.document.status, world.document.epoch) == (Status.IN_PROGRESS, 2)


def test_a_lease_goes_a_day_after_its_last_renewal() -> None:
    """The lease of a write, and that of a handler."""
    world = World()
    job = world.job()
    assert job.run()
    world.grace_passes()
    sweep(world)
    world.checkpoints.renew_lease(world.key, job.attempt.nonce)
    world.bucket.put("leases/run-1/2", b"alive")
    world.sleep(23 * 3600)
    world.bucket.put("leases/run-3/4", b"alive")
    sweep(world)
    assert len([key for key in world.bucket.contents() if key.startswith("leases/")]) == 3
    world.sleep(2 * 3600)
    sweep(world, may_go_on=lambda: False)
    assert len([key for key in world.bucket.contents() if key.startswith("leases/")]) == 3
    sweep(world)
    assert [key for key in world.bucket.contents() if key.startswith("leases/")] == ["leases/run-3/4"]


def test_finished_writes_cost_nothing() -> None:
    """A hundred and ten thousand of them take the same requests, and nothing but markers is listed."""

    def requests(finished: int) -> list[str]:
        world = World()
        world.job().begin()
        world.owner_dies()
        body = world.bucket.contents()[f"checkpoints/{world.key}.json"]
        for number in range(finished):
            world.bucket._objects[f"checkpoints/sw-{number:032x}.json"] = (body, '"x"', world.now())
        network = Network()
        sweep(world, network=network)
        assert not any(sent.verb == "list" and sent.key.startswith("checkpoints") for sent in network.sent)
        return [f"{sent.verb} {sent.key}" for sent in network.sent]

    assert requests(100) == requests(10_000)


@pytest.mark.slow
def test_a_backlog_is_worked_off_over_several_sweeps() -> None:
    """Each sweep has time for a third of two thousand."""
    world = World(existing=False)
    job = world.job()
    job.claimer.announce()
    marker = json.loads(world.bucket.contents()[f"open/{world.key}/{job.attempt.nonce}"])
    keys = []
    for number in range(2_000):
        world.sleep(1)
        write = dataclasses.replace(world.write, step=f"step {number}")
        keys.append(write.key)
        own = {"write_key": write.key, "step": write.step, "prefix": job.attempt.file_prefix(write.key, 1)}
        body = json.dumps({**marker, **own}).encode()
        world.bucket.put(f"open/{write.key}/{job.attempt.nonce}", body)
    world.sleep(25 * 3600)

    def once(draw: float) -> Sweep:
        tickets = iter(range(680 * 3))  # a write, its marker, and the removal of that
        return sweep(world, may_go_on=lambda: next(tickets, None) is not None, draw=draw)

    first = once(0.9)
    assert len(first.looks) == 2_001
    assert first.count(Action.LEFT) == 2_001 - 680
    assert first.open_since is not None
    assert once(0.1).count(Action.LEFT) == 2_001 - 2 * 680
    assert once(0.5).count(Action.LEFT) == 0
    assert world.marked() == ()
