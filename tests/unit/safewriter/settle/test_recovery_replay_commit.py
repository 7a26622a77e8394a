"""A commit that is in the air lands at every moment of the settling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from safewriter.record.document import CommitPoint, Status
from safewriter.settle.recovery import Cause
from tests.unit.safewriter.failing import Fault, Network
from tests.unit.safewriter.invariants import check
from tests.unit.safewriter.settle.replay import (
    LIMIT,
    Moment,
    Scenario,
    dies,
    ends_well,
    every_scenario,
    is_cleaned,
    recovers,
    retries,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.safewriter.job import Job

pytestmark = pytest.mark.slow


def in_the_air(scenario: Scenario, job: Job) -> Callable[[], object]:
    """Return the landing of a commit whose client knows nothing of its death, by the rules of Delta and gate."""
    job.prepare()
    if scenario.existing:
        return job.rebase
    return lambda: job.note() and job.rebase()


@every_scenario
@pytest.mark.parametrize("taken", [True, False])
def test_a_commit_that_lands_at_any_moment_makes_no_verdict_untrue(scenario: Scenario, taken: object) -> None:
    """Before each request of settler and retry, or after them all; its own slot being free or taken."""
    for number in range(1, LIMIT):
        world, job = scenario.begun()
        land = in_the_air(scenario, job)
        if taken and scenario.existing:
            world.append_foreign()
        moment = Moment(number, land)
        ends_well(world, scenario, moment)
        landed_in_time = moment.happened
        moment.now()
        check(world)
        is_cleaned(world)
        if not landed_in_time:
            break
    assert number > 20


@every_scenario
def test_a_commit_that_lands_at_any_moment_while_the_settler_dies_at_any_write(scenario: Scenario) -> None:
    """Both at once: the settler is killed, and the commit lands before, between or after."""
    for kind in (Fault.KILL_BEFORE, Fault.KILL_AFTER):
        for write in range(1, LIMIT):
            fired = False
            for number in range(1, LIMIT):
                world, job = scenario.begun()
                moment = Moment(number, in_the_air(scenario, job))
                network = Network(kind, write, before=moment)
                dies(world, scenario, network)
                recovers(world, scenario, moment)
                landed_in_time = moment.happened
                moment.now()
                check(world)
                # The moment of the landing decides how many writes there are, so one run without a kill says little.
                fired = fired or network.fired
                if not landed_in_time:
                    retries(world)
                    break
            if not fired:
                break
        assert 2 < write < LIMIT - 1


@pytest.mark.parametrize("commit_point", CommitPoint)
def test_note_and_commit_of_a_creation_land_at_any_two_moments(commit_point: CommitPoint) -> None:
    """The note decides: if it is closed first, the commit is never sent; otherwise version 0 is fenced."""
    scenario = Scenario(commit_point, Cause.KILLED, existing=False)
    fates = set()
    in_time = False
    for first in range(1, LIMIT):
        for second in range(first, LIMIT):
            world, job = scenario.begun()
            job.prepare()
            noted: list[bool] = []
            note = Moment(first, lambda job=job, noted=noted: noted.append(job.note()))  # type: ignore[misc]
            commit = Moment(second, lambda job=job, noted=noted: noted == [True] and job.rebase())  # type: ignore[misc]

            def both(number: int, note: Moment = note, commit: Moment = commit) -> None:
                note(number)
                commit(number)

            recovers(world, scenario, both)
            in_time = commit.happened
            note.now()
            commit.now()
            check(world)
            fates.add((noted[0], world.log.head, world.document.status))
            retries(world)
            if not in_time:
                break
        if not in_time and second == first:
            break
    kept = Status.COMMITTED if commit_point is CommitPoint.WRITE else Status.ROLLED_BACK
    assert {(False, -1, Status.ROLLED_BACK), (True, 0, Status.ROLLED_BACK)} <= fates
    assert kept in {status for noted, _, status in fates if noted}
