"""Several settlers at once, request by request, with other writers and a commit that lands at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from safewriter.record.document import OPEN, CommitPoint, Status
from safewriter.settle.recovery import Cause, Evidence
from tests.unit.safewriter.failing import Network, Stopped
from tests.unit.safewriter.invariants import bystanders_are_there, check, history_is_legal, log_is_whole
from tests.unit.safewriter.surroundings import NOTHING_KNOWN
from tests.unit.safewriter.world import World

if TYPE_CHECKING:
    from tests.unit.safewriter.job import Job

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


class Interleaving(RuleBasedStateMachine):
    """A block that ended somehow, two settlers, another writer, a retry, with their requests in any order."""

    world: World
    job: Job
    settlers: tuple[Settler, ...]
    in_the_air: bool

    @initialize(
        commit_point=st.sampled_from(CommitPoint),
        existing=st.booleans(),
        fate=st.sampled_from(["landed", "in the air", "never sent"]),
        causes=st.tuples(st.sampled_from(Cause), st.sampled_from(Cause)),
    )
    def begin(self, commit_point: CommitPoint, existing: object, fate: str, causes: tuple[Cause, Cause]) -> None:
        self.world = World(commit_point, existing=bool(existing))
        self.job = self.world.job().begin("{}0.parquet", "p=1/{}1.parquet")
        self.in_the_air = fate == "in the air"
        if fate == "landed":
            self.job.land()
        elif self.in_the_air:
            self.job.prepare()
            self.in_the_air = self.job.note()
        self.settlers = tuple(Settler(self.world, cause, Evidence(1)) for cause in causes)

    @rule(number=st.integers(0, 1), requests=st.integers(1, 8))
    def settler_goes_on(self, number: int, requests: int) -> None:
        self.settlers[number].step(requests)

    @precondition(lambda self: self.world.log.head >= 0)
    @rule()
    def somebody_appends(self) -> None:
        self.world.append_foreign()

    @precondition(lambda self: self.in_the_air)
    @rule()
    def commit_lands(self) -> None:
        self.in_the_air = False
        self.job.rebase()

    @rule()
    def retry_runs(self) -> None:
        if len(self.world.jobs) < 4:
            self.world.owner_dies()
            self.world.job().run()

    @invariant()
    def table_and_history_are_sound(self) -> None:
        log_is_whole(self.world)
        bystanders_are_there(self.world)
        history_is_legal(self.world)

    @invariant()
    def verdict_is_true(self) -> None:
        check(self.world)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        for settler in self.settlers:
            settler.step()
            check(self.world)
        assert self.world.document.status not in OPEN
        if self.in_the_air:
            self.job.rebase()
        check(self.world)
        self.world.owner_dies()
        for _ in range(2):
            if self.world.job().run():
                break
        assert self.world.document.status is Status.COMMITTED
        check(self.world)


def test_any_order_of_requests_ends_in_one_true_verdict() -> None:
    """And the retry brings the batch in exactly once."""
    run_state_machine_as_test(Interleaving, settings=settings(max_examples=100, stateful_step_count=25))
