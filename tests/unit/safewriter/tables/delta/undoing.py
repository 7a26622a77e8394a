"""A commit that has landed, the search for it, and its undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from safewriter.tables.delta.history import DeltaHistory
from safewriter.tables.delta.undo import find_live, undo_obstacle
from safewriter.tables.delta.undo import undo as undo_commit
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from tests.unit.safewriter.job import Job


def landed(**more: Any) -> tuple[World, Job]:
    world = World(**more)
    return world, world.job().begin("{}a.parquet", "day=x%20y/{}b.parquet").land()


def undo(world: World, job: Job) -> str | None:
    log = DeltaHistory(world.lake, world.clock)
    commits = log.since(job.document.attempt)
    ours = find_live(commits, world.key, job.document.epoch)
    assert ours is not None
    obstacle = undo_obstacle(log, job.document, ours, commits)
    return obstacle or undo_commit(log, job.document, commits, ours, world.clock)


def live(world: World, job: Job, epoch: int = 1) -> int | None:
    found = find_live(DeltaHistory(world.lake, world.clock).since(job.document.attempt), world.key, epoch)
    return None if found is None else found.version


def obstacle(world: World, job: Job) -> str:
    """Try to undo the commit; the undo must be refused, without a trace in the log."""
    head = world.log.head
    found = undo(world, job)
    assert found is not None
    assert world.log.head == head
    return found
