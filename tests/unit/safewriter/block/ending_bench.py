"""The end of a block, with a Spark session that a test can hang, silence or let fail."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from safewriter.block.block import Block
from safewriter.block.ending import Ending
from safewriter.record.document import CommitPoint
from safewriter.schedule import Schedule
from safewriter.tables.delta.gate import GateState, GateStatus
from tests.unit.safewriter.surroundings import TABLE
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.unit.safewriter.job import Job

__all__ = ["LANDED", "LEAD_MS", "NOTHING_SENT", "FakeSession", "ending", "landed"]

LEAD_MS = 400
LANDED = GateState(GateStatus.LANDED, passed=True, version=2, refusal="", stray="")
NOTHING_SENT = GateState(GateStatus.NONE, passed=False, version=-1, refusal="", stray="")


@dataclass
class FakeSession:
    """The Spark side of a block, as far as its ending calls it."""

    sight: GateState = NOTHING_SENT
    quiet: Iterator[bool] = field(default_factory=lambda: iter([True]))
    answer: Callable[[], object] = lambda: None
    has_begun: bool = True
    publication: Callable[[], object] = lambda: None

    def may_have_left_files(self, seen: GateState) -> bool:
        return False

    def shut(self, reason: str) -> None:
        self.answer()

    def publish(self) -> None:
        self.publication()

    def has_written(self) -> bool:
        return self.sight.passed

    def cancel(self) -> None:
        pass

    def wait_until_quiet(self, patience_s: float) -> bool:
        return next(self.quiet)

    def report(self) -> GateState:
        return self.sight


def ending(
    job: Job,
    session: Any,
    *,
    sleep: Callable[[float], None] = lambda _: None,
    commit_point: CommitPoint = CommitPoint.WRITE,
) -> Ending:
    world = job.world
    assert job.held is not None
    block = Block(
        table=TABLE,
        write=world.write,
        attempt=job.attempt,
        commit_point=commit_point,
        schedule=None if job.deadline is None else Schedule(job.deadline, LEAD_MS),
        checkpoints=job.checkpoints,
        recovery=job.recovery,
        session=session,
        batch=None,
        journal=None,
    )
    return Ending(block, job.held, sleep)


def landed(world: World | None = None) -> tuple[World, Job, Ending]:
    """A block whose commit has landed."""
    world = world or World()
    job = world.job().begin().land()
    return world, job, ending(job, FakeSession(sight=LANDED))
