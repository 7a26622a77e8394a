"""A commit that has landed, the search for it, and its undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safewriter.tables.delta.history import DeltaHistory
from safewriter.tables.delta.revert import find_live, revert
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from tests.unit.safewriter.job import Job


def landed(**more: Any) -> tuple[World, Job]:
    world = World(**more)
    return world, world.job().begin("{}a.parquet", "day=x%20y/{}b.parquet").land()


def undo(world: World, job: Job) -> str | None:
    log = DeltaHistory(world.lake, world.clock)
    ours = find_live(log.since(job.document.attempt), world.key, job.document.epoch)
    assert ours is not None
    return revert(log, job.document, log.since(job.document.attempt), ours, world.checkpoints, world.clock)


def live(world: World, job: Job, epoch: int = 1) -> int | None:
    found = find_live(DeltaHistory(world.lake, world.clock).since(job.document.attempt), world.key, epoch)
    return None if found is None else found.version


def obstacle(world: World, job: Job, *, slots: int = 0) -> str:
    """Inverse, which has to be refused; the log gets so many empty commits by that."""
    head = world.log.head
    found = undo(world, job)
    assert found is not None
    assert world.log.head == head + slots
    assert not world.log.actions("remove", world.log.head) or not slots
    return found
