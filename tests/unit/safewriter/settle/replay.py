"""A death, an error or a delay at every write of a settler: the scenarios, and how each has to end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from safewriter.errors import UnknownOutcomeError
from safewriter.record.document import OPEN, CommitPoint, Status
from safewriter.settle.recovery import Cause
from tests.unit.safewriter.failing import Fault, Killed, Network
from tests.unit.safewriter.invariants import check, nothing_is_left
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.unit.safewriter.job import Job

LIMIT = 1000
"""No process here sends that many requests; a loop that gets there does not end by itself."""


@dataclass(frozen=True)
class Scenario:
    """A block that died, and the expected outcome."""

    commit_point: CommitPoint
    cause: Cause
    existing: bool

    def __str__(self) -> str:
        return f"{self.commit_point}-{self.cause.value}-{'append' if self.existing else 'create'}"

    def begun(self) -> tuple[World, Job]:
        world = World(self.commit_point, existing=self.existing)
        return world, world.job().begin("{}0.parquet")

    @property
    def undoes(self) -> bool:
        return self.commit_point is CommitPoint.SUCCESS or self.cause is Cause.EXCEPTION


SCENARIOS = [
    Scenario(commit_point, cause, existing)
    for existing in (True, False)
    for commit_point, cause in (
        (CommitPoint.WRITE, Cause.KILLED),
        (CommitPoint.WRITE, Cause.EXCEPTION),
        (CommitPoint.SUCCESS, Cause.KILLED),
    )
]
every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=str)


class Moment:
    """An event before the n-th request of all processes together; 0: never by itself."""

    def __init__(self, number: int, happen: Callable[[], object]) -> None:
        self._number = number
        self._happen = happen
        self._requests = 0
        self.happened = False

    def __call__(self, _: int) -> None:
        self._requests += 1
        if self._requests == self._number:
            self.now()

    def now(self) -> None:
        if not self.happened:
            self.happened = True
            self._happen()


def nobody(_: int) -> None:
    """Let no event happen between two requests."""


def dies(world: World, scenario: Scenario, network: Network) -> None:
    """Let a settler run until it ends or is killed; it may raise an error, but not return an untrue answer."""
    try:
        world.settle(scenario.cause, network=network)
    except (Killed, UnknownOutcomeError):
        assert network.fired
    check(world)


def recovers(world: World, scenario: Scenario, before: Callable[[int], None] = nobody) -> None:
    """Settle from the beginning: one run is enough, a second one changes nothing."""
    document = world.settle(scenario.cause, network=Network(before=before))
    assert document.status not in OPEN
    check(world)
    contents = world.bucket.contents(), world.lake.contents()
    assert world.settle(scenario.cause).status is document.status
    assert (world.bucket.contents(), world.lake.contents()) == contents


def retries(world: World, before: Callable[[int], None] = nobody) -> None:
    """Bring the batch in exactly once, within two attempts."""
    world.owner_dies()
    for _ in range(2):
        if world.job(Network(before=before)).run():
            break
        check(world)
    assert world.document.status is Status.COMMITTED
    check(world)


def is_cleaned(world: World) -> None:
    """After the grace one look removes everything that is left."""
    world.grace_passes()
    world.recovery().clean(world.key)
    nothing_is_left(world)
    check(world)


def ends_well(world: World, scenario: Scenario, before: Callable[[int], None] = nobody) -> None:
    recovers(world, scenario, before)
    retries(world, before)


def faults(*kinds: Fault, and_all_after: bool = False, before: Callable[[int], None] = nobody) -> Iterator[Network]:
    """Yield a network for each write that can be hit, and one in which no write is, for each kind of fault."""
    for kind in kinds:
        for number in range(1, LIMIT):
            network = Network(kind, number, and_all_after=and_all_after, before=before)
            yield network
            if not network.fired:
                assert number > 2
                break
        else:
            raise AssertionError
