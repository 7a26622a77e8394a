"""Claims without enough time."""

from __future__ import annotations

import dataclasses

import pytest

from safewriter.deadline import Deadline
from safewriter.errors import (
    TooLateError,
)
from safewriter.schedule import Schedule
from tests.unit.safewriter.block.claiming import claims
from tests.unit.safewriter.failing import Network
from tests.unit.safewriter.job import LEAD_MS
from tests.unit.safewriter.surroundings import WHOLE_MS
from tests.unit.safewriter.world import World


def ending(world: World, left_ms: int) -> Schedule:
    return Schedule(Deadline(world.now_ms + left_ms, world.now_ms - 100_000, world.clock), LEAD_MS)


@pytest.mark.parametrize("left_ms", [LEAD_MS, 0, -1])
def test_too_late_for_a_marker_is_too_late(left_ms: int) -> None:
    """Nothing is written at all."""
    world = World()
    job = world.job()

    with pytest.raises(TooLateError, match="too late to begin"):
        dataclasses.replace(job.claimer, schedule=ending(world, left_ms)).announce()

    assert world.bucket.contents() == {}


def test_one_millisecond_before_the_lead_there_is_time() -> None:
    """Exactly at the boundary it is too late."""
    world = World()
    claimer = dataclasses.replace(world.job().claimer, schedule=ending(world, LEAD_MS + 1))

    claimer.announce()
    assert claimer.claim(world.job().state()).checkpoint.document.epoch == 1


def test_too_late_for_the_first_document_is_too_late() -> None:
    """Reading the table may take long, so the clock is checked again."""
    world = World()

    with pytest.raises(TooLateError):
        claims(world.job(), schedule=ending(world, LEAD_MS))

    assert world.bucket.contents() == {}


@pytest.mark.parametrize("read", [1, 2, 3])
def test_after_reading_the_document_the_clock_is_looked_at_again(read: int) -> None:
    """An attempt that froze during its read must not claim what others have settled and cleaned meanwhile."""
    world = World()
    world.job().begin()
    if read < 3:
        world.settle()
    else:
        world.owner_dies()  # settling it takes its reads too
    body = world.document

    def before(_: int) -> None:
        if network.sent[-1].verb == ("create" if read == 1 else "get"):
            world.now_ms += WHOLE_MS * (read < 3 or network.sent[-1].key.startswith("leases"))

    network = Network(before=before)
    job = world.job(network)

    with pytest.raises(TooLateError):
        claims(job)

    assert world.document.epoch == 1
    assert (world.document == body) is (read < 3)


def test_without_a_deadline_it_is_never_too_late() -> None:
    """Off Lambda a job may take as long as it likes."""
    world = World()
    job = world.job(deadline_ms=None)
    world.now_ms += 10**12

    assert job.claim().checkpoint.document.attempt.deadline_ms is None


def test_while_waiting_for_another_attempt_time_can_run_out() -> None:
    """Too late is too late, also for an owner that may be dead."""
    world = World()
    world.job().begin()

    with pytest.raises(TooLateError):
        claims(world.job(), schedule=ending(world, LEAD_MS + 5_000))

    assert world.document.epoch == 1
