"""Two settlers at once, stopped between any two of their requests. Schedules (`tests/lab`) have more of everything."""

from __future__ import annotations

import pytest

from safewriter.record.document import OPEN, CommitPoint
from safewriter.settle.recovery import Cause, Evidence
from tests.unit.safewriter.failing import Network, Stopped
from tests.unit.safewriter.invariants import check
from tests.unit.safewriter.surroundings import NOTHING_KNOWN
from tests.unit.safewriter.world import World

pytestmark = pytest.mark.slow


class Settler:
    """A settler that can be stopped between any two of its requests."""

    def __init__(self, world: World, cause: Cause, evidence: Evidence = NOTHING_KNOWN) -> None:
        self._world = world
        self._cause = cause
        self._evidence = evidence
        self._network = Network(stop_after=0)
        self._sent = 0
        self.ended = False

    def step(self, requests: int | None = None) -> None:
        """Let it send this many more requests, or all."""
        if self.ended:
            return
        self._sent = 0 if requests is None else self._sent + requests
        self._network = self._network.resumed(None if requests is None else self._sent)
        try:
            self._world.settle(self._cause, self._evidence, self._network)
        except Stopped:
            return
        self.ended = True


SCENES = [
    (CommitPoint.WRITE, Cause.EXCEPTION, Cause.KILLED, True, True),
    (CommitPoint.WRITE, Cause.KILLED, Cause.EXCEPTION, True, True),
    (CommitPoint.SUCCESS, Cause.KILLED, Cause.RETRY, True, True),
    (CommitPoint.WRITE, Cause.DEADLINE, Cause.RETRY, True, False),
    (CommitPoint.WRITE, Cause.DEADLINE, Cause.RETRY, False, False),
]


@pytest.mark.parametrize(("commit_point", "one", "other", "existing", "landed"), SCENES)
def test_two_settlers_agree_wherever_they_take_turns(
    commit_point: CommitPoint, one: Cause, other: Cause, existing: object, landed: object
) -> None:
    """The first stops anywhere, the second stops anywhere, the first runs to its end, then the second does."""
    first_ended = False
    first_sends = longest = 0
    while not first_ended:
        first_sends += 1
        second_ended = False
        second_sends = 0
        while not second_ended:
            second_sends += 1
            world = World(commit_point, existing=bool(existing))
            job = world.job().begin("{}0.parquet")
            if landed:
                job.land()
            else:
                job.prepare()
                job.note()
            first, second = Settler(world, one), Settler(world, other)
            first.step(first_sends)
            second.step(second_sends)
            first_ended, second_ended = first.ended, second.ended
            longest = max(longest, second_sends)
            first.step()
            check(world)
            assert world.document.status not in OPEN
            second.step()
            check(world)
            if not landed:
                job.rebase()
                check(world)
    assert min(first_sends, longest) > 5
