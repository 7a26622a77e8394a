"""A sweep as a process of its own, and a look at one write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.record.checkpoints import Checkpoints
from safewriter.settle.sweeper import Look, Sweep, Sweeper
from tests.unit.safewriter.failing import Network

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.safewriter.world import World


def forever() -> bool:
    return True


def sweep(
    world: World, *, network: Network | None = None, may_go_on: Callable[[], bool] = forever, draw: float = 0.5
) -> Sweep:
    """Sweep once, as a process of its own; return the results as they were told."""
    checkpoints = Checkpoints((network or Network()).store(world.bucket))
    recovery = world.recovery(network, may_go_on=may_go_on)
    told: list[Look] = []
    Sweeper(checkpoints, recovery, world.clock, may_go_on, draw=lambda: draw, threads=1, on_look=told.append).sweep()
    return Sweep(tuple(told))


def look(world: World) -> Look:
    """Sweep a bucket with one write."""
    (found,) = sweep(world).looks
    return found
