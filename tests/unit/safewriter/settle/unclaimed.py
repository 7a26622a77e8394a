"""A write whose document has expired while its marker has stayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from safewriter.record.checkpoints import Checkpoints
from safewriter.record.document import CommitPoint
from safewriter.settle.one_write import Inspection, look_for_unclaimed
from safewriter.settle.recovery import Cause
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from safewriter.record.marker import Marker
    from tests.unit.safewriter.job import Job

DAYS = 24 * 3600


def vanish(world: World) -> None:
    """Let the document expire, as a lifecycle rule does; the marker stays."""
    world.bucket.delete(f"checkpoints/{world.key}.json")


def close(world: World, network: Network | None = None) -> Inspection:
    """Look at the write as the sweeper does."""
    bucket = Checkpoints((network or Network()).store(world.bucket))
    return look_for_unclaimed(bucket, world.recovery(network), world.key, Cause.SWEEPER, world.clock)


def marker_of(world: World) -> Marker:
    """The only marker of the write."""
    (mark,) = world.checkpoints.markers_of(world.key)
    found = world.checkpoints.announced(mark)
    assert found is not None
    return found.marker


def landed(commit_point: CommitPoint = CommitPoint.WRITE) -> tuple[World, Job]:
    """A write that has landed, is still open, and whose document has expired."""
    world = World(commit_point)
    job = world.job().begin().land()
    world.append_foreign()
    world.sleep(31 * DAYS)
    vanish(world)
    return world, job
